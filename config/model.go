package config

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Model is a language model, or what stands in for one. A zero number is the
// provider's own.
type Model struct {
	Name   string
	Type   string
	File   string // of a script or recording: the path among Config.Files
	Source []byte // of a script or recording: what File holds

	Model   string // the provider's name of it
	BaseURL string // "" is the provider's own
	Key     Secret // "" when there is none, or KeyFrom is not set
	KeyFrom string // the variable Key is from; "" when none is needed

	Whole         bool // answers come in one piece
	MaxTokens     int  // of an answer
	Temperature   *float64
	ContextWindow int // tokens of a request and its answer
	Concurrency   int // requests at once
	Timeout       time.Duration
	Prices        Prices
	Fallback      []string // models asked when this one fails, in order

	Pos Pos
}

// Prices are what a million tokens cost, in billionths of a currency.
type Prices struct{ Input, Output, Cached int64 }

// Secret is a text that is not printed.
type Secret string

// String implements fmt.Stringer; what there is of a secret is hidden.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// modelType is a type of model.
type modelType struct {
	name string
	read func(item, *Model)
}

// modelTypes is the one place that lists what a model can be.
func modelTypes() []modelType {
	return []modelType{
		{"script", readFile},
		{"openai", provider("OPENAI_API_KEY")},
		{"anthropic", provider("ANTHROPIC_API_KEY")},
		{"gemini", provider("GEMINI_API_KEY")},
		{"replay", readFile},
		{"human", readPlain},
	}
}

func readModel(it item) {
	it.declare()
	all := typeNames()
	at, ok := it.child("type")
	if !ok {
		it.at("type").fail("is missing", listing("there are ", all))
		return
	}
	name, ok := at.filled()
	if !ok {
		return
	}
	i := slices.Index(all, name)
	if i < 0 {
		at.fail("model type "+quote(name)+" is unknown", cmp.Or(Suggest(name, all), listing("there are ", all)))
		return
	}
	m := Model{Name: it.name, Type: name, Pos: it.pos}
	modelTypes()[i].read(it, &m)
	it.doc.config.Models = append(it.doc.config.Models, m)
}

func typeNames() (all []string) {
	for _, t := range modelTypes() {
		all = append(all, t.name)
	}
	return all
}

// kindOf is the field that readModel has read.
func kindOf() field { return field{"type", func(value) {}} }

// readPlain reads a model that has nothing to set.
func readPlain(it item, _ *Model) { it.fields(kindOf()) }

// readFile reads a model that a file holds.
func readFile(it item, m *Model) {
	it.fields(kindOf(), field{"file", func(v value) { m.File, m.Source = v.file() }})
	if _, ok := it.child("file"); !ok {
		it.at("file").fail("is missing", "a model of type "+m.Type+" names its file")
	}
}

// The most that a model's document may say.
const (
	maxModelTokens = 100_000_000
	maxAtOnce      = 100_000
	maxModelTime   = time.Hour
	maxTemperature = 2
	maxPrice       = 1_000_000
)

// provider reads a model behind an address; variable holds its key unless the
// document names another.
func provider(variable string) func(item, *Model) {
	return func(it item, m *Model) {
		stream := true
		it.fields(
			kindOf(),
			field{"model", filledText(&m.Model)},
			field{"baseURL", address(&m.BaseURL)},
			field{"apiKey", secret(&m.Key, &m.KeyFrom)},
			field{"stream", truth(&stream)},
			field{"maxTokens", amount(&m.MaxTokens, maxModelTokens)},
			field{"temperature", temperature(&m.Temperature)},
			field{"contextWindow", amount(&m.ContextWindow, maxModelTokens)},
			field{"maxConcurrency", amount(&m.Concurrency, maxAtOnce)},
			field{"timeout", duration(&m.Timeout, maxModelTime)},
			field{"prices", mapping(
				field{"input", price(&m.Prices.Input)},
				field{"output", price(&m.Prices.Output)},
				field{"cached", price(&m.Prices.Cached)},
			)},
			field{"fallback", models(&m.Fallback)},
		)
		m.Whole = !stream
		if _, ok := it.child("model"); !ok {
			it.at("model").fail("is missing", "it is the name the provider knows the model by")
		}
		if m.KeyFrom == "" && m.BaseURL == "" {
			m.KeyFrom = variable
			value, _ := it.doc.env(variable)
			m.Key = Secret(value)
		}
	}
}

func filledText(to *string) func(value) {
	return func(v value) {
		if text, ok := v.filled(); ok {
			*to = text
		}
	}
}

func amount(to *int, most int64) func(value) {
	var n int64
	read := upTo(&n, most)
	return func(v value) {
		read(v)
		*to = int(n)
	}
}

// address reads where a provider is.
func address(to *string) func(value) {
	return func(v value) {
		text, ok := v.filled()
		if !ok {
			return
		}
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.wrong("an address", "as https://api.example.com/v1")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			v.fail("holds more than scheme, host and path", "a key is written as apiKey: ${NAME}")
		default:
			*to = strings.TrimRight(text, "/")
		}
	}
}

// secret reads a text that only a variable may hold: documents are kept with
// every task. It is no error that the variable is not set; who uses it says so.
func secret(to *Secret, from *string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.ScalarNode {
			v.wrong("a variable", "as ${OPENAI_API_KEY}")
			return
		}
		name, ok := strings.CutPrefix(v.node.Value, "${")
		name, closed := strings.CutSuffix(name, "}")
		name, _, fallback := strings.Cut(name, ":")
		if !ok || !closed || fallback || !isVariable(name) {
			v.fail("must be a variable and nothing else: documents are kept with every task", "write ${OPENAI_API_KEY}, say, and set that")
			return
		}
		text, _ := v.doc.env(name)
		*to, *from = Secret(text), name
	}
}

func temperature(to **float64) func(value) {
	return func(v value) {
		if f, ok := v.number(maxTemperature); ok {
			*to = &f
		}
	}
}

// price reads an amount of money for a million tokens.
func price(to *int64) func(value) {
	const billion = 1e9
	return func(v value) {
		if f, ok := v.number(maxPrice); ok {
			*to = int64(math.Round(f * billion))
		}
	}
}

// number gives a number from 0 to most. A variable may hold it.
func (v value) number(most float64) (float64, bool) {
	digits, ok := v.node.Value, v.node.Tag == "!!int" || v.node.Tag == "!!float"
	if v.hasVariable() {
		if digits, ok = v.text(); !ok {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(f >= 0 && f <= most) {
		v.wrong(fmt.Sprintf("a number from 0 to %g", most), "")
		return 0, false
	}
	return f, true
}

// models reads a list of names of models.
func models(to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.wrong("a list of models", "as [cheap, local]")
			return
		}
		for _, entry := range v.items() {
			var name string
			if refer("model", &name)(entry); name != "" {
				*to = append(*to, name)
			}
		}
	}
}

// file reads the file that v names, relative to the document.
func (v value) file() (path string, data []byte) {
	name, ok := v.filled()
	if !ok {
		return "", nil
	}
	path = filepath.Clean(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(v.doc.src.path), path)
	}
	data, err := v.doc.include(path)
	if err != nil {
		v.fail(quote(path)+": "+reason(err), "a file is named relative to its document")
		return path, nil
	}
	return path, data
}
