// Command peers runs the systems that bench compares rolecall with in another process.
// Their packages would slow down every start of bench.
//
// bench starts it in a directory on the measured disk. It reads lines "name n", does
// the work of that name n times, and answers with the nanoseconds it took or with an
// error.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

// writers is the number of concurrent writers, where a peer supports them.
const writers = 64

// peer does its work n times.
type peer func(n int) error

// kinds maps names to functions that prepare a peer.
var kinds = map[string]func() (peer, error){
	"sqlite":    sqliteAppend,
	"jetstream": jetstreamAppend,
	"adk 1":     func() (peer, error) { return adkTasks(1) },
	"adk 16":    func() (peer, error) { return adkTasks(16) },
}

func main() {
	ready := map[string]peer{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var name string
		var n int
		if _, err := fmt.Sscanf(in.Text(), "%q %d", &name, &n); err != nil {
			fmt.Println("peers:", err)
			continue
		}
		took, err := run(ready, name, n)
		if err != nil {
			fmt.Println("peers:", name+":", err)
			continue
		}
		fmt.Println(took.Nanoseconds())
	}
}

// run prepares a peer on first use, and measures its work.
func run(ready map[string]peer, name string, n int) (time.Duration, error) {
	if ready[name] == nil {
		make, ok := kinds[name]
		if !ok {
			return 0, fmt.Errorf("unknown peer")
		}
		p, err := make()
		if err != nil {
			return 0, err
		}
		ready[name] = p
	}
	start := time.Now()
	err := ready[name](n)
	return time.Since(start), err
}

// runShared distributes n pieces of work among workers and returns the first error.
func runShared(n, workers int, work func(worker int) error) error {
	var all sync.WaitGroup
	var once sync.Once
	var first error
	for w := range workers {
		all.Go(func() {
			for range n / workers {
				if err := work(w); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		})
	}
	all.Wait()
	return first
}
