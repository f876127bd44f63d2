// Package scripts tests the command line as a user runs it. Each file of
// testdata/script lists the commands, the files they work on, and the output they must
// have. The package is a module of its own, so that testscript is not a dependency of
// rolecall.
//
//	go test -run 'Scripts/run' .
package scripts
