// Package scripts holds tests that run the command line as a person would: the
// files of testdata/script say which commands run, on which files, and what they
// print. It is a module of its own, so that testscript is no dependency of rolecall.
//
//	go test -run 'Scripts/run' .
package scripts
