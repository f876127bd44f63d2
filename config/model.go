package config

import (
	"cmp"
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

	Stream        bool // answers come in pieces, unless the document says no
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
type Prices struct {
	Input, Output, Cached int64
	Given                 bool // there are some, if only of 0
}

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
	read func(docItem, *Model)
}

// modelTypes is the one place that lists what a model can be.
func modelTypes() []modelType {
	return []modelType{
		{"script", readFileModel},
		{"openai", readProvider("OPENAI_API_KEY")},
		{"anthropic", readProvider("ANTHROPIC_API_KEY")},
		{"gemini", readProvider("GEMINI_API_KEY")},
		{"replay", readFileModel},
		{"human", readHuman},
	}
}

func readModel(it docItem) {
	it.declare()
	all := modelTypeNames()
	at, ok := it.child("type")
	if !ok {
		it.missing("type").fail("is missing", listHint("there are ", all))
		return
	}
	name, ok := at.nonEmpty()
	if !ok {
		return
	}
	i := slices.Index(all, name)
	if i < 0 {
		at.fail("model type "+quote(name)+" is unknown", cmp.Or(Suggest(name, all), listHint("there are ", all)))
		return
	}
	m := Model{Name: it.name, Type: name, Pos: it.pos}
	modelTypes()[i].read(it, &m)
	it.doc.config.Models = append(it.doc.config.Models, m)
}

func modelTypeNames() (all []string) {
	for _, t := range modelTypes() {
		all = append(all, t.name)
	}
	return all
}

// typeField is the field that readModel has read.
func typeField() field { return field{"type", func(value) {}} }

// readHuman reads a model that has nothing to set.
func readHuman(it docItem, _ *Model) { it.fields(typeField()) }

// readFileModel reads a model that a file holds.
func readFileModel(it docItem, m *Model) {
	it.fields(typeField(), field{"file", func(v value) { m.File, m.Source = v.includeFile() }})
	if _, ok := it.child("file"); !ok {
		it.missing("file").fail("is missing", "a model of type "+m.Type+" names its file")
	}
}

// The most that a model's document may say.
const (
	maxModelTokens = 100_000_000
	maxConcurrency = 100_000
	maxModelTime   = time.Hour
	maxTemperature = 2
	maxPrice       = 1_000_000
)

// readProvider reads a model behind an address; variable holds its key unless the
// document names another.
func readProvider(variable string) func(docItem, *Model) {
	return func(it docItem, m *Model) {
		m.Stream = true
		it.fields(
			typeField(),
			field{"model", nonEmptyField(&m.Model)},
			field{"baseURL", providerURL(&m.BaseURL)},
			field{"apiKey", secretField(&m.Key, &m.KeyFrom)},
			field{"stream", boolField(&m.Stream)},
			field{"maxTokens", intField(&m.MaxTokens, maxModelTokens)},
			field{"temperature", temperatureField(&m.Temperature)},
			field{"contextWindow", intField(&m.ContextWindow, maxModelTokens)},
			field{"maxConcurrency", intField(&m.Concurrency, maxConcurrency)},
			field{"timeout", durationField(&m.Timeout, maxModelTime)},
			field{"prices", mappingField(
				field{"input", priceField(&m.Prices.Input)},
				field{"output", priceField(&m.Prices.Output)},
				field{"cached", priceField(&m.Prices.Cached)},
			)},
			field{"fallback", fallbackList(it.name, &m.Fallback)},
		)
		if _, ok := it.child("model"); !ok {
			it.missing("model").fail("is missing", "it is the name the provider knows the model by")
		}
		if m.KeyFrom == "" && m.BaseURL == "" {
			m.KeyFrom, m.Key = variable, it.missing("apiKey").keyFromEnv(variable)
		}
		if _, m.Prices.Given = it.child("prices"); !m.Prices.Given {
			it.doc.deferCheck(it.requirePrices)
		}
		it.checkModel(m)
	}
}

// checkModel refuses what each field may say and all together cannot.
func (it docItem) checkModel(m *Model) {
	if m.ContextWindow > 0 && m.MaxTokens >= m.ContextWindow {
		at, _ := it.child("maxTokens")
		at.fail("leaves no room for the request: the contextWindow holds both", "an answer of "+strconv.Itoa(m.ContextWindow/4)+", say")
	}
	if m.Type == "anthropic" && m.Temperature != nil && *m.Temperature > 1 {
		at, _ := it.child("temperature")
		at.failType("a number from 0 to 1", "the models of this provider take no more")
	}
}

func nonEmptyField(to *string) func(value) {
	return func(v value) {
		if text, ok := v.nonEmpty(); ok {
			*to = text
		}
	}
}

func intField(to *int, most int64) func(value) {
	var n int64
	read := boundedInt(&n, most)
	return func(v value) {
		read(v)
		*to = int(n)
	}
}

// completionsPath is what people copy with an address.
const completionsPath = "/chat/completions"

// providerURL reads where a provider is.
func providerURL(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		switch u, err := url.Parse(text); {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.failRedacted("must be an address", "as https://api.example.com/v1")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			v.failRedacted("holds more than scheme, host and path", "a key is written as apiKey: ${NAME}")
		case strings.HasSuffix(strings.TrimRight(u.Path, "/"), completionsPath):
			v.fail("ends in "+completionsPath+", which every request adds", "without it, as https://api.example.com/v1")
		default:
			*to = strings.TrimRight(text, "/")
		}
	}
}

// secretField reads a text that only a variable may hold: documents are kept with
// every task. It is no error that the variable is not set; who uses it says so.
func secretField(to *Secret, from *string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.ScalarNode {
			v.failRedacted("must be a variable", "as ${OPENAI_API_KEY}")
			return
		}
		name, ok := strings.CutPrefix(v.node.Value, "${")
		name, closed := strings.CutSuffix(name, "}")
		name, _, fallback := strings.Cut(name, ":")
		if !ok || !closed || fallback || !isVariable(name) {
			v.failRedacted("must be a variable and nothing else: documents are kept with every task", "write ${OPENAI_API_KEY}, say, and set that")
			return
		}
		*to, *from = v.keyFromEnv(name), name
	}
}

// keyFromEnv gives what a variable holds, as a key: what a shell or an editor left
// around it is none of it.
func (v value) keyFromEnv(variable string) Secret {
	text, _ := v.doc.env(variable)
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.failRedacted("what the variable "+clip(variable)+" holds is no key: it has characters that are not printable ASCII", "set it anew")
		return ""
	}
	return Secret(text)
}

func temperatureField(to **float64) func(value) {
	return func(v value) {
		if f, ok := v.number(maxTemperature); ok {
			*to = &f
		}
	}
}

// priceField reads an amount of money for a million tokens.
func priceField(to *int64) func(value) {
	const billion = 1e9
	return func(v value) {
		f, ok := v.number(maxPrice)
		if !ok {
			return
		}
		if *to = int64(math.Round(f * billion)); *to == 0 && f > 0 {
			v.fail("is less than a billionth and would count as nothing", "")
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
		v.failType("a number from 0 to "+strconv.FormatFloat(most, 'f', -1, 64), "")
		return 0, false
	}
	return f, true
}

// fallbackList reads a list of names of models other than self.
func fallbackList(self string, to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of models", "as [cheap, local]")
			return
		}
		for _, entry := range v.items() {
			var name string
			switch referenceField("model", &name)(entry); name {
			case "":
			case self:
				entry.fail("names the model itself", "a fallback is asked when this model has failed")
			default:
				*to = append(*to, name)
			}
		}
	}
}

// includeFile reads the file that v names, relative to the document.
func (v value) includeFile() (path string, data []byte) {
	name, ok := v.nonEmpty()
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
