"""What the panel model is compared with: published methods and plain scikit-learn."""
