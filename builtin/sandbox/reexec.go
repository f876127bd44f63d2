package sandbox

import (
	"fmt"
	"os"
)

// Values of argv[0] with which this binary starts itself again.
const (
	argIsolate = "rolecall: sandbox" // isolates itself, then starts the job
	argProgram = "rolecall: program" // runs a Program, inside the sandbox
	argHold    = "rolecall: hold"    // waits while its starter opens its user namespace
)

// Enter must be the first call in main. In a process that a Launcher started it
// runs the job and does not return. Otherwise it returns a Launcher that can
// run the given programs by name. A binary calls Enter once, always with the
// same programs.
func Enter(programs map[string]Program) *Launcher {
	switch os.Args[0] {
	case argIsolate:
		exit(runAsJob())
	case argProgram:
		exit(runProgram(programs))
	case argHold:
		exit(holdNamespace())
	}
	return &Launcher{entered: true}
}

// runProgram runs the program named by the first argument.
func runProgram(programs map[string]Program) error {
	if len(os.Args) != 2 || programs[os.Args[1]] == nil {
		return fmt.Errorf("unknown program %q", os.Args[1:])
	}
	return programs[os.Args[1]](os.Stdin, os.Stdout)
}

// exit ends this process, which is the process of a job. With an error it prints the error, and the
// exit code is 1.
func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "rolecall: sandbox:", err)
	os.Exit(1)
}
