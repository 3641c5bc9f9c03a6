"""The optirank problem and the algorithms that solve it; knows no scikit-learn."""
