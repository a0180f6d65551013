"""One revision a file; the number is the format of the store afterwards. There is no way back."""
