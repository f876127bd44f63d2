package cmd

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/lineinput"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// askedAt returns a question that waits for a minute.
func askedAt(schema, url string) journal.Event {
	return journal.Event{Body: journal.QuestionAsked{
		Tool: "deploy", Question: "q", ID: "id", Kind: tool.PersonInput, Server: "ops", Message: "Which\x1b[2J machine?", Schema: json.RawMessage(schema), URL: url,
		Until: time.Now().Add(time.Minute),
	}}
}

// answerWith lets a person write lines, and returns the answer and what was printed. Without lines
// there is no person.
func answerWith(t *testing.T, e journal.Event, lines ...string) (tool.Answer, string) {
	t.Helper()
	var out strings.Builder
	var got tool.Answer
	q := &questioner{out: &out,
		isOpen: func(_ context.Context, id string) (bool, error) { return id == "id", nil },
		answer: func(_ context.Context, _ string, a tool.Answer) error { got = a; return nil },
	}
	if lines != nil {
		q.next = func(context.Context) (string, error) {
			if len(lines) == 0 {
				return "", io.EOF
			}
			line := lines[0]
			lines = lines[1:]
			return line, nil
		}
	}
	if err := q.handle(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return got, out.String()
}

const machineForm = `{"type":"object","required":["machine","disks"],"properties":{
	"machine":{"type":"string","title":"Machine"}, "disks":{"type":"integer"}, "size":{"type":"string","enum":["s","m"],"default":"s"},
	"labels":{"type":"array","items":{"type":"string","enum":["a","b"]}}, "force":{"type":"boolean"}}}`

// A person accepts, refuses or cancels a question, and writes the fields of the answer. What does not
// fit is asked again, three times.
func TestQuestioner_Person(t *testing.T) {
	for _, tt := range []struct {
		name   string
		schema string
		lines  []string
		action tool.Action
		want   string
	}{
		{"accepted", "", []string{"y"}, tool.Accept, ""},
		{"refused", "", []string{"n"}, tool.Decline, ""},
		{"nothing written", "", []string{""}, tool.Decline, ""},
		{"cancelled", "", []string{"c"}, tool.Cancel, ""},
		{"the input ends", "", []string{}, tool.Cancel, ""},
		{"all fields", machineForm, []string{"yes", "db-1", "2", "m", "a, b", "y"}, tool.Accept, `{"disks":2,"force":true,"labels":["a","b"],"machine":"db-1","size":"m"}`},
		{"only what is required", machineForm, []string{"Y", "7", "2", "", "", ""}, tool.Accept, `{"disks":2,"machine":"7","size":"s"}`},
		{"corrected", machineForm, []string{"y", "x", "two", "", "", "", "x", "3", "", "", ""}, tool.Accept, `{"disks":3,"machine":"x","size":"s"}`},
		{"never right", machineForm, []string{"y", "x", "two", "", "", "", "x", "two", "", "", "", "x", "two", "", "", "", "x", "3", "", "", ""}, tool.Cancel, ""},
		{"the input ends in a field", machineForm, []string{"y", "x"}, tool.Cancel, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, out := answerWith(t, askedAt(tt.schema, ""), tt.lines...)
			if got.Action != tt.action || string(got.Content) != tt.want {
				t.Errorf("got %s %s, want %s %s\n%s", got.Action, got.Content, tt.action, tt.want, out)
			}
			if !strings.HasPrefix(out, "deploy (MCP server ops) asks: Which\uFFFD[2J machine?\n") {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// Without a person a question is declined at once. A question that is answered by its client, or was
// answered, is left alone.
func TestQuestioner_NoPerson(t *testing.T) {
	if got, out := answerWith(t, askedAt(machineForm, "")); got.Action != tool.Decline || out != "" {
		t.Errorf("got %+v, printed %q", got, out)
	}
	if got, _ := answerWith(t, journal.Event{Body: journal.QuestionAsked{Tool: "t", Message: "?"}}); got.Action != "" {
		t.Errorf("the question of a client was answered: %+v", got)
	}
	closed := askedAt("", "")
	body := closed.Body.(journal.QuestionAsked)
	body.ID = "another"
	closed.Body = body
	if got, _ := answerWith(t, closed, "y"); got.Action != "" {
		t.Errorf("a question that is over was answered: %+v", got)
	}
}

// An address is shown as text, with the note that it is not opened.
func TestQuestioner_URL(t *testing.T) {
	got, out := answerWith(t, askedAt("", "https://login.example.com/\x1b[1m"), "y")
	if got.Action != tool.Accept || !strings.Contains(out, "https://login.example.com/\uFFFD[1m; rolecall does not open it") {
		t.Errorf("%+v, %q", got, out)
	}
}

// An answer that comes too late ends nothing.
func TestQuestioner_TooLate(t *testing.T) {
	var out strings.Builder
	q := &questioner{out: &out, isOpen: func(context.Context, string) (bool, error) { return true, nil },
		answer: func(context.Context, string, tool.Answer) error { return errcode.New(errcode.QuestionNotFound, "gone") }}
	if err := q.handle(t.Context(), askedAt("", "")); err != nil || !strings.Contains(out.String(), "the question is over") {
		t.Errorf("%v, %q", err, out.String())
	}
}

// A line that is typed after the time of its question does not answer the next question.
func TestQuestioner_LateLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		out := new(buffer.SyncBuffer)
		answers := make(chan tool.Answer, 1)
		q := &questioner{isOpen: func(context.Context, string) (bool, error) { return true, nil },
			answer: func(_ context.Context, _ string, a tool.Answer) error { answers <- a; return nil }}
		q.askAt(lineinput.New(in, maxAnswerLine), &terminal{out: out})
		if err := q.handle(t.Context(), askedAt("", "")); err != nil {
			t.Fatal(err)
		}
		if a := <-answers; a.Action != tool.Cancel {
			t.Errorf("after its time: %+v", a)
		}
		types := func(line string) {
			if _, err := io.WriteString(keys, line+"\n"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		types("yes\x1b[2J")
		go func() {
			if err := q.handle(t.Context(), askedAt(`{"type":"object","properties":{"count":{"type":"integer"}}}`, "")); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if !strings.Contains(out.String(), "\ntyped for an earlier question, not used: yes\uFFFD[2J\ndeploy") {
			t.Fatalf("printed %q", out.String())
		}
		types("y")
		types("1250")
		if a := <-answers; a.Action != tool.Accept || string(a.Content) != `{"count":1250}` {
			t.Errorf("the second answer: %s %s", a.Action, a.Content)
		}
	})
}
