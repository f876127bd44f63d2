package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// reconnectTime is how long a follower tries to connect again after it has lost the
// connection: long enough for a restart of the process.
const reconnectTime = time.Minute

// follower shows the events of a task that another process works on.
type follower struct {
	c    *common
	api  *client.Client
	task string
	view view
	out  io.Writer // for notes, above what the view keeps on the terminal
	seen uint64    // the sequence number of the last event shown

	questions *questioner // of the task; nil leaves them to others

	found *client.Task // the task as it was found; nil after its first use

	redialer
}

func newFollower(c *common, api *client.Client, task client.Task) *follower {
	screen := newTerminal(c.err)
	return &follower{c: c, api: api, task: string(task.ID), view: newView(c, screen), out: screen, found: &task, redialer: redialer{work: "the task", remedy: "follow the task again"}}
}

// answerQuestions makes the follower answer the questions of the task's tools.
func (f *follower) answerQuestions() {
	f.questions = remoteQuestioner(func() *client.Client { return f.api }, f.task, f.out)
	if screen, ok := f.out.(*terminal); ok && !f.c.json {
		f.questions.setPerson(f.c.in, screen)
	}
}

// follow shows the events of the task until it ends or no process works on it. It returns
// the task as it is then. It can be called once.
func (f *follower) follow(ctx context.Context) (client.Task, error) {
	defer f.view.close()
	for {
		task, err := f.showTask(ctx)
		switch {
		case ctx.Err() != nil:
			return task, ctx.Err()
		case err == nil && (task.Status != org.Interrupted || f.lostAt.IsZero()):
			return task, nil
		case err != nil && !isConnectionError(err):
			return task, err
		}
		if err := f.reconnect(ctx); err != nil {
			return task, err
		}
	}
}

// showTask shows the events of the task, until its end if a process works on it. It returns
// the task as it is then.
func (f *follower) showTask(ctx context.Context) (client.Task, error) {
	task, err := f.readTask(ctx)
	if err != nil {
		return task, err
	}
	works := task.Status != org.Interrupted && !needsRetry(task)
	if works {
		f.lostAt = time.Time{}
	}
	if err := f.showEvents(ctx, works); err != nil || !works || task.Status.Ended() {
		return task, err
	}
	return f.api.FindTask(ctx, f.task)
}

// needsRetry reports whether a task is paused until it is retried. One that a person has paused
// goes on by itself when it is resumed.
func needsRetry(t client.Task) bool {
	return t.Status == org.Paused && (t.Reason == nil || t.Reason.Code != errcode.Paused)
}

// readTask returns the task as it is, or at first as it was found.
func (f *follower) readTask(ctx context.Context) (client.Task, error) {
	if found := f.found; found != nil {
		f.found = nil
		return *found, nil
	}
	return f.api.FindTask(ctx, f.task)
}

// showEvents shows the events of the task that have not been shown yet, with wait until its
// end.
func (f *follower) showEvents(ctx context.Context, wait bool) error {
	for e, err := range f.api.TaskEvents(ctx, f.task, f.seen, wait) {
		if err != nil {
			return err
		}
		if err := f.view.show(e); err != nil {
			return err
		}
		f.seen = max(f.seen, e.Seq)
		if f.questions != nil {
			if err := f.questions.handle(ctx, e); err != nil {
				return err
			}
		}
		if _, paused := e.Body.(journal.TaskPaused); paused { // it may have been retried since
			if task, err := f.api.FindTask(ctx, f.task); err != nil || needsRetry(task) {
				return err
			}
		}
	}
	return nil
}

// reconnect waits and connects to the process that works on the task now. Without an error the
// follower may still have no connection.
func (f *follower) reconnect(ctx context.Context) error {
	if f.lostAt.IsZero() {
		fmt.Fprintln(f.out, connectionLost)
		if v, ok := f.view.(*treeView); ok {
			v.dropPartials()
		}
	}
	api, err := f.redial(ctx, f.c)
	if api != nil {
		f.api = api
	}
	return err
}

// isConnectionError reports whether a request failed because the connection did.
func isConnectionError(err error) bool {
	_, sent := errors.AsType[*url.Error](err)
	_, network := errors.AsType[*net.OpError](err)
	return sent || network || errors.Is(err, client.ErrNotServed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
