package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/journal"
)

// EventQuery selects events of the organization. Zero fields select all.
type EventQuery struct {
	Task, Agent  string // ids; the operator may name an agent by its role
	Role         string // name or id
	Caller, Tool string
	Types        []journal.EventType
	Denied       bool   // only denied calls and tasks, and attempts to get more permissions
	Since        string // see wire.ParseSince
	After        uint64 // only events with higher sequence numbers
}

// params returns the query parameters.
func (q EventQuery) params() url.Values {
	types := make([]string, len(q.Types))
	for i, t := range q.Types {
		types[i] = string(t)
	}
	params := url.Values{"after": {strconv.FormatUint(q.After, 10)}}
	for name, value := range map[string]string{
		"task": q.Task, "agent": q.Agent, "role": q.Role, "caller": q.Caller, "tool": q.Tool, "since": q.Since, "type": strings.Join(types, ","),
	} {
		if value != "" {
			params.Set(name, value)
		}
	}
	if q.Denied {
		params.Set("denied", "1")
	}
	return params
}

// NewestEvents returns the newest limit events, newest first. Next is not empty if there
// may be more. Last is the number after which StreamEvents has what comes later.
func (c *Client) NewestEvents(ctx context.Context, q EventQuery, limit int) (Events, error) {
	all := Events{}
	params := q.params()
	for first := true; ; first = false {
		params.Set("limit", strconv.Itoa(min(limit-len(all.Items), wire.MaxPageItems)))
		page, err := doJSON[Events](ctx, c, request{method: http.MethodGet, path: apiPath("events"), query: params})
		if err != nil {
			return all, err
		}
		if first {
			all.Last = page.Last
		}
		all.Items, all.Next = append(all.Items, page.Items...), page.Next
		if page.Next == "" || len(all.Items) >= limit {
			return all, nil
		}
		params.Set("cursor", page.Next)
	}
}

// StreamEvents yields events, oldest first. With follow it waits for further events, and
// reports an error when the stream ends. A stream that ends with a gap is continued, so
// that no event is left out.
func (c *Client) StreamEvents(ctx context.Context, q EventQuery, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for {
			gap, done := c.streamUntilGap(ctx, q, follow, yield)
			if done {
				return
			}
			if gap <= q.After {
				yield(journal.Event{}, fmt.Errorf("stream events after %d: the server does not go on", q.After))
				return
			}
			q.After = gap
		}
	}
}

// streamUntilGap yields events until the stream ends. It returns the number after which to
// continue, or that the end is final.
func (c *Client) streamUntilGap(ctx context.Context, q EventQuery, follow bool, yield func(journal.Event, error) bool) (gap uint64, done bool) {
	params := q.params()
	if follow {
		params.Set("follow", "1")
	}
	answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("events"), query: params, header: http.Header{"Accept": {wire.NDJSON}}})
	if err != nil {
		yield(journal.Event{}, err)
		return 0, true
	}
	defer answer.Body.Close()
	for d := json.NewDecoder(answer.Body); ; {
		var e journal.Event
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) && !follow {
			return 0, true
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the server has ended the stream")
		}
		if err != nil {
			yield(e, fmt.Errorf("stream events: %w", err))
			return 0, true
		}
		if _, ends := e.Body.(journal.EventGap); ends {
			return e.Seq, false
		}
		if !yield(e, nil) {
			return 0, true
		}
	}
}
