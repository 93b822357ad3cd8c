"""Laws that train or take steps: what a Check names and that needs more than a formula."""
