// Command peers runs what rolecall is compared with and shares no process
// with: their packages would make every start of bench slower.
//
// bench starts it in a directory on the disk that is measured. It reads lines
// "name n", does the work of that name n times, and answers with the
// nanoseconds that took, or with what went wrong.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

// writers is how many append at once, where a peer can make use of it.
const writers = 64

// peer is somebody who is ready to work.
type peer func(n int) error

// kinds lists the peers, each with what makes it ready, by name.
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

// run makes a peer ready the first time, and measures its work.
func run(ready map[string]peer, name string, n int) (time.Duration, error) {
	if ready[name] == nil {
		make, ok := kinds[name]
		if !ok {
			return 0, fmt.Errorf("there is no such peer")
		}
		p, err := make()
		if err != nil {
			return 0, err
		}
		ready[name] = p
	}
	began := time.Now()
	err := ready[name](n)
	return time.Since(began), err
}

// together shares n pieces of work among some, and gives the first error.
func together(n, some int, work func(worker int) error) error {
	var all sync.WaitGroup
	var once sync.Once
	var first error
	for w := range some {
		all.Go(func() {
			for range n / some {
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
