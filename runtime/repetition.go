package runtime

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// How often a language model may make the same calls and get the same results
// before it is told, and before its turn is ended.
const (
	repeatsTold = 3
	repeatsMost = 6
)

// repetition is how often the last answers of a turn made the same calls with
// the same results.
type repetition struct {
	sum   uint64
	times int
}

var repeatSeed = maphash.MakeSeed()

// observe takes in an answer whose calls have all ended.
func (r *repetition) observe(items []model.Item) {
	var h maphash.Hash
	h.SetSeed(repeatSeed)
	note := func(name string, doc []byte) {
		for _, part := range [...][]byte{[]byte(name), doc} { // no text of JSON or name has this byte
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
		r.times++
	} else {
		*r = repetition{sum, 1}
	}
}

// promptNote is for the prompt of an agent that repeats itself.
func (r repetition) promptNote() string {
	if r.times < repeatsTold {
		return ""
	}
	var p strings.Builder
	section(&p, "You repeat yourself", fmt.Sprintf("You made the same call %d times in a row and got the same result. Do something else, or end your turn with what you know; at %d your turn is ended.", r.times, repeatsMost))
	return p.String()
}

// limitError says that a turn is over because it goes round in circles.
func (r repetition) limitError() error {
	if r.times < repeatsMost {
		return nil
	}
	return errcode.New(errcode.MaxToolRounds, "the model made the same call %d times in a row and got the same result each time", r.times)
}
