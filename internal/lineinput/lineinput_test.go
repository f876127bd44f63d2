package lineinput_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rolecall/rolecall/internal/lineinput"
)

// Lines come one by one. The end of the input stays.
func TestReader_Next(t *testing.T) {
	r := lineinput.New(strings.NewReader("first\n123456789"), 10)
	for _, want := range []string{"first", "123456789"} {
		if got, err := r.Next(t.Context()); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for range 2 {
		if got, err := r.Next(t.Context()); got != "" || err != io.EOF {
			t.Errorf("at the end: %q, %v", got, err)
		}
	}
}

// A line that is too long ends the input.
func TestReader_LongLine(t *testing.T) {
	r := lineinput.New(strings.NewReader("0123456789\nshort\n"), 10)
	for range 2 {
		if got, err := r.Next(t.Context()); got != "" || err == nil || err.Error() != "a line has 10 bytes or more" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// A line that completes a cancelled Next is kept apart from the line that is read later.
func TestReader_Late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		types := func(text string) {
			t.Helper()
			if _, err := io.WriteString(keys, text); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		r := lineinput.New(in, 100)
		if got, late := r.Late(); late {
			t.Errorf("late before any line: %q", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := make(chan error)
		go func() {
			_, err := r.Next(ctx)
			cancelled <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		types("too late\n")
		if got, late := r.Late(); got != "too late" || !late {
			t.Errorf("late: %q, %v", got, late)
		}
		go types("in time\n")
		if got, err := r.Next(t.Context()); got != "in time" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if got, late := r.Late(); late {
			t.Errorf("late although it was read: %q", got)
		}
	})
}
