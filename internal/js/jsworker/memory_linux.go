package jsworker

import (
	"bytes"
	"os"
	"strconv"
)

// residentMemory returns a function that returns how many bytes of memory this process has
// for itself. It returns nil if there is no /proc. The file stays open for the life of the
// process.
func residentMemory() func() int64 {
	statm, err := os.Open("/proc/self/statm")
	if err != nil {
		return nil
	}
	page := int64(os.Getpagesize())
	return func() int64 {
		text := make([]byte, 256)
		n, _ := statm.ReadAt(text, 0) // at the end of the file there is an error too
		return page * privatePages(text[:n])
	}
}

// privatePages returns the resident pages that are not of files. The text has the fields size,
// resident, shared and others.
func privatePages(statm []byte) int64 {
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(fields[1]), 10, 64) // the kernel writes numbers
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
	return resident - shared
}
