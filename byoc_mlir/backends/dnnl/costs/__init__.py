"""What ops take with oneDNN: measured, else estimated."""
