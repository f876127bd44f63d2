package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/config"
)

// probeOnline contacts the models, MCP servers and sources of a configuration, with a
// temporary data directory.
func probeOnline(ctx context.Context, c *common, cfg *config.Config) (list []app.ServiceProbe, err error) {
	dir, err := tempDir("rolecall-check-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	trial := *c
	trial.data = dir
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := openSession(&trial, &terminal{out: io.Discard}, sessionOptions{fatal: func(err error) { cancel(err) }})
	if err != nil {
		return nil, err
	}
	list = s.ProbeServices(ctx, cfg)
	return list, s.CloseWithin(closeTimeout)
}

// checkProbes returns errReported if something that was contacted cannot be used.
func checkProbes(list []app.ServiceProbe) error {
	for _, s := range list {
		if s.Err != nil {
			return errReported
		}
	}
	return nil
}

// probeLine describes the result of contacting a service.
func probeLine(s app.ServiceProbe) string {
	of := s.Kind + " " + s.Name + ": "
	switch {
	case s.Skip != "":
		return of + "not contacted: " + s.Skip
	case s.Err != nil:
		return of + "failed: " + s.Err.Error()
	}
	return of + "answers, in " + s.Time.Round(time.Millisecond).String()
}

// probeItem is the result of contacting a service, as JSON.
type probeItem struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	OK      bool   `json:"ok"` // it answers
	Error   string `json:"error,omitempty"`
	Skipped string `json:"skipped,omitempty"` // why it was not contacted
	Millis  int64  `json:"millis"`
}

func probeItems(list []app.ServiceProbe) []probeItem {
	items := []probeItem{}
	for _, s := range list {
		item := probeItem{Kind: s.Kind, Name: s.Name, OK: s.Err == nil && s.Skip == "", Skipped: s.Skip, Millis: s.Time.Milliseconds()}
		if s.Err != nil {
			item.Error = fmt.Sprint(s.Err)
		}
		items = append(items, item)
	}
	return items
}
