package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// A language model that repeats itself is told, and then its turn ends. Two answers are equal
// if they make the same calls with the same arguments, and the results differ in ids and times
// only (see steadyHash). What counts:
//
//   - equal answers in a row, and cycles of up to maxCycle answers, within a turn;
//   - equal messages to the same receiver, also across turns. Delayed ones do not count there.
//
// The count of sent messages starts at zero when the agent receives something new. This may be
// the answer to these messages, and such an answer is not the result of a call.

// How often a language model may repeat itself: before it is told, and before its turn ends.
// A cycle ends the turn after maxCycleAnswers answers, too.
const (
	warnRepeats     = 3
	maxRepeats      = 6
	maxCycle        = 4
	maxCycleAnswers = 16
)

// Numbers of answers and messages that are remembered.
const (
	maxKeptAnswers  = maxCycle * maxRepeats
	maxKeptMessages = 32
)

// repetition is what an agent has done again and again. It is a part of the agent's state.
type repetition struct {
	answers  []observedAnswer // the last of this turn
	sent     []sentMessage    // since the agent received something new
	received []uint64         // hashes of the last messages received, at most maxCycle
	news     int              // how often the agent received something new
}

// observedAnswer is an answer whose calls have all ended.
type observedAnswer struct {
	at, end int    // the answer and its results in the items of the state
	calls   uint64 // hash of what it does
	results uint64 // hash of its results; 0 until it is needed
	news    int    // repetition.news if it sends messages only; else 0
}

// sentMessage counts a message to a receiver.
type sentMessage struct {
	sum   uint64
	count int
	call  identity.CallID // the last call that sent it
}

// observe counts the last answer, whose calls have all ended.
func (r *repetition) observe(items []model.Item) {
	at := len(items) - 1
	for at >= 0 && items[at].Answer == nil {
		at--
	}
	if at < 0 {
		return
	}
	answer := items[at].Answer
	o := observedAnswer{at: at, end: len(items), calls: callsHash(answer)}
	if !slices.ContainsFunc(answer.Calls, func(c model.Call) bool { return c.Name != "send_message" }) {
		o.news = r.news
	}
	r.answers = append(r.answers, o)
	r.answers = r.answers[max(0, len(r.answers)-maxKeptAnswers):]
	for _, c := range answer.Calls {
		if c.Name == "send_message" && succeeded(items[at:], c.ID) {
			r.countSent(c)
		}
	}
}

// succeeded reports whether items have a result of a call that is not an error.
func succeeded(items []model.Item, call identity.CallID) bool {
	return slices.ContainsFunc(items, func(i model.Item) bool { return i.Result != nil && i.Result.Call == call && !i.Result.IsError })
}

// countSent counts the messages of a call of send_message.
func (r *repetition) countSent(c model.Call) {
	args := gjson.ParseBytes(c.Args)
	if args.Get("delayMs").Num > 0 {
		return
	}
	payload := args.Get("payload").Raw
	for _, to := range args.Get("to").Array() {
		sum := exactHash(to.Str, payload)
		n := slices.IndexFunc(r.sent, func(m sentMessage) bool { return m.sum == sum })
		if n < 0 {
			r.sent = append(r.sent, sentMessage{sum: sum})
			r.sent = r.sent[max(0, len(r.sent)-maxKeptMessages):]
			n = len(r.sent) - 1
		}
		r.sent[n].count++
		r.sent[n].call = c.ID
	}
}

// noteReceived notes a message to the agent. Unless it says what one of the last messages said, all
// messages may be sent again. A message of the user is always new.
func (r *repetition) noteReceived(m *model.Message) {
	sum := steadyHash(m.FromRole, string(m.Payload))
	if m.From != User && slices.Contains(r.received, sum) {
		return
	}
	r.sent = nil
	r.news++
	r.received = append(r.received, sum)
	r.received = r.received[max(0, len(r.received)-maxCycle):]
}

// endTurn forgets the answers of the turn.
func (r *repetition) endTurn() { r.answers = nil }

// loop is a cycle of answers at the end of a turn, or a message that is sent again.
type loop struct {
	length  int // answers of the cycle; 0 for a message
	times   int // complete passes, or how often the message was sent
	answers int // of all passes
	call    identity.CallID
}

// mustEndTurn reports whether the loop ends the turn.
func (l loop) mustEndTurn() bool {
	return l.times >= maxRepeats || l.length > 1 && l.answers >= maxCycleAnswers
}

// find returns what the agent repeats at least warnRepeats times, preferably what ends the
// turn. It returns the zero loop if there is nothing.
func (r *repetition) find(items []model.Item) (found loop) {
	for length := 1; length <= maxCycle && found.times == 0; length++ {
		run := 0
		for n := len(r.answers) - 1; n >= length && r.equal(items, n, n-length); n-- {
			run++
		}
		if times := (run + length) / length; times >= warnRepeats {
			found = loop{length: length, times: times, answers: run + length}
		}
	}
	for _, m := range r.sent {
		if m.count >= warnRepeats && !found.mustEndTurn() && m.count > found.times {
			found = loop{times: m.count, call: m.call}
		}
	}
	return found
}

// equal reports whether two answers did the same and got the same. Results are compared only
// if the calls are equal.
func (r *repetition) equal(items []model.Item, a, b int) bool {
	one, two := &r.answers[a], &r.answers[b]
	if one.calls != two.calls || one.news != two.news {
		return false
	}
	for _, o := range [...]*observedAnswer{one, two} {
		if o.results == 0 {
			o.results = resultsHash(items[o.at+1 : o.end])
		}
	}
	return one.results == two.results
}

// repetitionNote returns the section of the note that tells an agent that it repeats itself, else
// "".
func (s *state) repetitionNote() string {
	l := s.repeated.find(s.items)
	var text string
	switch {
	case l.times == 0:
		return ""
	case l.length == 0:
		text = fmt.Sprintf("You sent the same message to the same receiver %d times and received nothing new.", l.times)
	case l.length == 1:
		text = fmt.Sprintf("You made the same call %d times in a row and got the same result.", l.times)
	default:
		text = fmt.Sprintf("You made the same %d calls in turn, %d times, and got the same results.", l.length, l.times)
	}
	var p strings.Builder
	writeSection(&p, "You repeat yourself", text+" Do something else, or end your turn with what you know. If you go on, your turn ends soon.")
	return p.String()
}

// repetitionError returns an error if the turn must end because the agent repeats itself. Its
// details have the calls of one pass, for the record.
func (s *state) repetitionError() error {
	l := s.repeated.find(s.items)
	if !l.mustEndTurn() {
		return nil
	}
	calls := s.repeated.callsOf(s.items, l)
	var names []string
	for _, c := range calls {
		names = append(names, textutil.OneLine(c.Tool, maxLine))
	}
	list := textutil.OneLine(strings.Join(names, ", "), maxLine)
	var err *errcode.Error
	switch {
	case l.length == 0:
		err = errcode.New(errcode.MaxToolRounds, "the model sent the same message to the same receiver %d times and received nothing new", l.times)
	case len(calls) == 0:
		err = errcode.New(errcode.MaxToolRounds, "the model said the same %d times in a row", l.times)
	case l.length == 1:
		err = errcode.New(errcode.MaxToolRounds, "the model made the same call %d times in a row and got the same result each time: %s", l.times, list)
	default:
		err = errcode.New(errcode.MaxToolRounds, "the model made the same calls in turn, %d answers in all, and got the same results: %s", l.answers, list)
	}
	return err.With(repeatedDetail, repeatedCalls{calls, l.times})
}

// repeatedDetail is the detail of an error that has the calls that were repeated.
const repeatedDetail = "repeated"

// repeatedCalls are the calls of one pass of a loop, and the number of passes.
type repeatedCalls struct {
	Calls []journal.RepeatedCall `json:"calls"`
	Times int                    `json:"times"`
}

// callsOf returns the calls of the last pass of a loop, oldest first.
func (r *repetition) callsOf(items []model.Item, l loop) (list []journal.RepeatedCall) {
	if l.length == 0 {
		return []journal.RepeatedCall{{Call: l.call, Tool: "send_message"}}
	}
	for _, o := range r.answers[len(r.answers)-l.length:] {
		for _, c := range items[o.at].Answer.Calls {
			list = append(list, journal.RepeatedCall{Call: c.ID, Tool: c.Name})
		}
	}
	return list[:min(len(list), maxRecordedCalls)]
}

// maxRecordedCalls is how many calls of a loop an event names.
const maxRecordedCalls = 20
