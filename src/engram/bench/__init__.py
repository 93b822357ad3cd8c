"""Speed and memory against straightforward baselines, as ratios in one run."""
