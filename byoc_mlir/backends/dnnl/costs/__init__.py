"""What ops and regions take with oneDNN: measured, else estimated."""
