// Package textstats is a module that measures text: the group "textstats" with the
// tools count_words and longest_lines. Models can only estimate either.
//
// It is the module to copy: it has settings with defaults, a constructor that checks
// them, and tools made by tool.New. It has no state, so it implements neither
// modules.Provisioner nor io.Closer.
package textstats

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Kind is the name of this kind of module.
const Kind = "textstats"

// Settings are the settings in the configuration.
type Settings struct {
	Lines int `json:"lines"` // how many lines longest_lines returns by default; 1 or more, default 3
}

// Module implements modules.Module.
type Module struct {
	name     string
	settings Settings
	tools    []tool.Tool
}

// New returns a module; it is a modules.Constructor. Errors have the code
// invalid_config.
func New(c modules.Config) (modules.Module, error) {
	m := &Module{name: c.Name, settings: Settings{Lines: 3}}
	if err := c.DecodeSettings(&m.settings); err != nil {
		return nil, err
	}
	if m.settings.Lines < 1 {
		return nil, errcode.New(errcode.InvalidConfig, "settings of module %q: lines is %d; it must be at least 1", c.Name, m.settings.Lines)
	}
	return m, m.makeTools()
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.name }

// ToolGroups implements modules.Module.
func (m *Module) ToolGroups() []toolgroups.Group {
	return []toolgroups.Group{{ID: "textstats", Description: "Count and measure text", Tools: m.tools}}
}

func (m *Module) makeTools() error {
	readOnly := &tool.Options{Effect: tool.ReadOnly, Flags: tool.FlagsOf()}
	count, err := tool.New("count_words", "Count the words, lines and characters of a text.", m.countWords, readOnly)
	longest, longestErr := tool.New("longest_lines", "Find the longest lines of a text, the longest first.", m.longestLines, readOnly)
	m.tools = []tool.Tool{count, longest}
	return errors.Join(err, longestErr)
}

type text struct {
	Text string `json:"text" jsonschema:"the text to measure"`
}

type counts struct {
	Words      int `json:"words"`
	Lines      int `json:"lines"`
	Characters int `json:"characters"` // Unicode code points
}

func (m *Module) countWords(_ context.Context, in text) (counts, error) {
	return counts{
		Words:      len(strings.Fields(in.Text)),
		Lines:      len(linesOf(in.Text)),
		Characters: utf8.RuneCountInString(in.Text),
	}, nil
}

type longestQuery struct {
	Text  string `json:"text" jsonschema:"the text to search"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many lines to return; 0 is the configured default"`
}

type line struct {
	Number     int    `json:"number"` // from 1
	Characters int    `json:"characters"`
	Text       string `json:"text"`
}

// longestLines sorts by length; lines of equal length stay in the order of the text.
func (m *Module) longestLines(_ context.Context, q longestQuery) ([]line, error) {
	if q.Limit < 0 {
		return nil, errcode.New(errcode.InvalidArguments, "limit: want 0 or more, got %d", q.Limit)
	}
	list := []line{}
	for n, l := range linesOf(q.Text) {
		list = append(list, line{Number: n + 1, Characters: utf8.RuneCountInString(l), Text: l})
	}
	slices.SortStableFunc(list, func(a, b line) int { return cmp.Compare(b.Characters, a.Characters) })
	return list[:min(len(list), cmp.Or(q.Limit, m.settings.Lines))], nil
}

// linesOf returns the lines of s without their line ends. A line end at the end of s
// does not begin another line.
func linesOf(s string) []string {
	var list []string
	for l := range strings.Lines(s) {
		list = append(list, strings.TrimRight(l, "\r\n"))
	}
	return list
}
