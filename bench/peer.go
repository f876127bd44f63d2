package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// peers is the running program peers.
type peers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startPeers builds the program and starts it in a directory.
func startPeers(dir string) (*peers, error) {
	program := filepath.Join(dir, "peers.bin")
	build := exec.Command("go", "build", "-C", "peers", "-o", program, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the peers, in the folder bench: %w", err)
	}
	p := &peers{cmd: exec.Command(program)}
	p.cmd.Dir, p.cmd.Stderr = dir, os.Stderr
	in, err := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	return p, p.cmd.Start()
}

// run returns a candidate that runs one of the peers, by name.
func (p *peers) run(name string) func(n int) {
	return func(n int) {
		must(fmt.Fprintf(p.in, "%q %d\n", name, n))
		if !p.out.Scan() {
			panic("bench: the peers exited")
		}
		if _, err := strconv.Atoi(p.out.Text()); err != nil {
			panic("bench: " + p.out.Text())
		}
	}
}

// close stops the program. p may be nil.
func (p *peers) close() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.in.Close(), p.cmd.Wait())
}
