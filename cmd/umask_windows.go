package cmd

// umask returns 0: the system has none.
func umask() int { return 0 }
