package sandbox

import (
	"fmt"
	"os"
	"runtime"
)

// The names, as argv[0], under which this binary is started again.
const (
	argIsolate = "rolecall: sandbox" // builds the walls, then becomes the job
	argProgram = "rolecall: program" // is a Program, inside
)

// Enter is the first line of main. In a process that a Launcher started it
// becomes the job and does not return; else it gives a Launcher that can run
// the programs by their names.
func Enter(programs map[string]Program) *Launcher {
	switch os.Args[0] {
	case argIsolate:
		fatal(runAsJob())
	case argProgram:
		fatal(runProgram(programs))
	}
	return &Launcher{entered: true, running: make(chan struct{}, max(4, 2*runtime.NumCPU()))}
}

// runProgram runs the program named by the first argument.
func runProgram(programs map[string]Program) error {
	if len(os.Args) != 2 || programs[os.Args[1]] == nil {
		return fmt.Errorf("this binary has no program %q", os.Args[1:])
	}
	return programs[os.Args[1]](os.Stdin, os.Stdout)
}

// fatal ends a job's process.
func fatal(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "rolecall: sandbox:", err)
	os.Exit(1)
}
