// Command roman prints numbers the Roman way.
package main

import (
	"fmt"
	"os"
	"strconv"

	"example.com/roman/roman"
)

func main() {
	for _, arg := range os.Args[1:] {
		n, err := strconv.Atoi(arg)
		if err == nil {
			var text string
			text, err = roman.Format(n)
			fmt.Println(text)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
