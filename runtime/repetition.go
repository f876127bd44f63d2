package runtime

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// How often a language model may repeat the same calls with the same results:
// before the prompt warns it, and before its turn ends.
const (
	warnRepeats = 3
	maxRepeats  = 6
)

// repetition counts how many consecutive answers of a turn made the same calls
// with the same results.
type repetition struct {
	sum   uint64
	count int
}

var repeatSeed = maphash.MakeSeed()

// observe counts the last answer, whose calls have all ended.
func (r *repetition) observe(items []model.Item) {
	var h maphash.Hash
	h.SetSeed(repeatSeed)
	note := func(name string, doc []byte) {
		for _, part := range [...][]byte{[]byte(name), doc} { // neither names nor JSON contain this byte
			h.Write(part)
			h.WriteByte(0xFF)
		}
	}
	for _, item := range slices.Backward(items) {
		switch {
		case item.Result != nil:
			note(item.Result.Tool, item.Result.Content)
			continue
		case item.Answer != nil:
			for _, c := range item.Answer.Calls {
				note(c.Name, c.Args)
			}
		}
		break
	}
	if sum := h.Sum64(); sum == r.sum {
		r.count++
	} else {
		*r = repetition{sum, 1}
	}
}

// promptNote returns the prompt section that warns an agent about repeating
// itself, else "".
func (r repetition) promptNote() string {
	if r.count < warnRepeats {
		return ""
	}
	var p strings.Builder
	writeSection(&p, "You repeat yourself", fmt.Sprintf("You made the same call %d times in a row and got the same result. Do something else, or end your turn with what you know; after %d times your turn ends.", r.count, maxRepeats))
	return p.String()
}

// limitError returns an error if the turn must end because the agent repeats
// itself.
func (r repetition) limitError() error {
	if r.count < maxRepeats {
		return nil
	}
	return errcode.New(errcode.MaxToolRounds, "the model made the same call %d times in a row and got the same result each time", r.count)
}
