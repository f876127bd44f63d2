package program

func limit() string { return 1 }
