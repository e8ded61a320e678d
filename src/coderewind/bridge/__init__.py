"""`rewind bridge`: Rewind inside Pi and oh-my-pi, spoken to by the extension in extensions/pi."""
