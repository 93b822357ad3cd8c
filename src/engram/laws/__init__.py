"""Laws that train or take steps: what a Check can name that needs more than a formula."""
