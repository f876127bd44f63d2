package script

import (
	"bytes"
	"slices"

	"github.com/rolecall/rolecall/model"
)

// equalItems reports whether a script reads the same in two items. A runtime usually passes
// the same pointers again, which the first comparison finds.
func equalItems(a, b model.Item) bool {
	if a == b {
		return true
	}
	switch {
	case a.Message != nil && b.Message != nil:
		return equalMessages(a.Message, b.Message)
	case a.Answer != nil && b.Answer != nil:
		return equalAnswers(a.Answer, b.Answer)
	case a.Result != nil && b.Result != nil:
		return equalResults(a.Result, b.Result)
	}
	return false
}

func equalMessages(a, b *model.Message) bool {
	return a.ID == b.ID && a.From == b.From && a.Task == b.Task &&
		bytes.Equal(a.Payload, b.Payload) && a.CreatedAt.Equal(b.CreatedAt)
}

func equalAnswers(a, b *model.Answer) bool {
	return a.Finish == b.Finish && a.MessagesRead == b.MessagesRead && a.Text == b.Text && a.State == b.State &&
		(a.Tools == nil) == (b.Tools == nil) && slices.Equal(a.Tools, b.Tools) &&
		slices.EqualFunc(a.Calls, b.Calls, equalCalls)
}

func equalCalls(a, b model.Call) bool {
	return a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Args, b.Args)
}

func equalResults(a, b *model.CallResult) bool {
	return a.Call == b.Call && a.Tool == b.Tool && a.IsError == b.IsError && bytes.Equal(a.Content, b.Content)
}
