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

// Model is a document of kind model: a language model, or a script, recording or
// person in its place. A zero number means the provider's default.
//
//	kind: model
//	name: claude
//	type: anthropic
//	model: claude-sonnet-4-5
//	apiKey: ${ANTHROPIC_API_KEY}
//	maxTokens: 4096
type Model struct {
	Name   string
	Type   string
	File   string // of a script or recording: the path in Config.Files
	Source []byte // of a script or recording: the content of File

	Model   string // the provider's name for the model
	BaseURL string // "" is the provider's default
	Key     Secret // "" if no key is needed or KeyFrom is not set
	KeyFrom string // the environment variable of Key; "" if no key is needed

	Stream        bool // answers are streamed; true by default
	MaxTokens     int  // of an answer
	Temperature   *float64
	ContextWindow int // tokens of a request and its answer
	Concurrency   int // the largest number of concurrent requests
	Timeout       time.Duration
	Prices        Prices
	Fallback      []string // models to use when this one fails, in order

	Pos Pos
}

// Prices are the prices of a million tokens, in billionths of a currency unit.
type Prices struct {
	Input, Output, Cached int64
	Given                 bool // the document has prices, even if they are 0
}

// Secret is a text that is never printed. It is empty or prints as ***.
type Secret string

// String returns *** for a secret that is not empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns the same as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// modelType is a type of model and the function that reads its fields.
type modelType struct {
	name string
	read func(docItem, *Model)
}

// modelTypes returns all types of models. It is the only list of them.
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

// readModel reads a document of kind model. It leaves out a model of an unknown
// type, which it reports.
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

// modelTypeNames returns the names of modelTypes, in the same order.
func modelTypeNames() (all []string) {
	for _, t := range modelTypes() {
		all = append(all, t.name)
	}
	return all
}

// typeField is the field type, which has been read before the other fields.
func typeField() field { return field{"type", func(value) {}} }

// readHuman reads a model without further fields.
func readHuman(it docItem, _ *Model) { it.fields(typeField()) }

// readFileModel reads a model of type script or replay, which names a file.
func readFileModel(it docItem, m *Model) {
	it.fields(typeField(), field{"file", func(v value) { m.File, m.Source = v.includeFile() }})
	if _, ok := it.child("file"); !ok {
		it.missing("file").fail("is missing", "a model of type "+m.Type+" names its file")
	}
}

// Limits of a model's document.
const (
	maxModelTokens = 100_000_000
	maxConcurrency = 100_000
	maxModelTime   = time.Hour
	maxTemperature = 2
	maxPrice       = 1_000_000
)

// readProvider returns a function that reads a model of a provider. The API key is
// in variable unless the document names another.
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
			it.missing("model").fail("is missing", "it is the provider's name for the model")
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

// checkModel rejects combinations of fields that are valid one by one.
func (it docItem) checkModel(m *Model) {
	if m.ContextWindow > 0 && m.MaxTokens >= m.ContextWindow {
		at, _ := it.child("maxTokens")
		at.fail("leaves no tokens for the request: the contextWindow covers both", "use "+strconv.Itoa(m.ContextWindow/4)+", for example")
	}
	if m.Type == "anthropic" && m.Temperature != nil && *m.Temperature > 1 {
		at, _ := it.child("temperature")
		at.failType("a number from 0 to 1", "the models of this provider accept no more")
	}
}

// nonEmptyField reads a text that is not empty.
func nonEmptyField(to *string) func(value) {
	return func(v value) {
		if text, ok := v.nonEmpty(); ok {
			*to = text
		}
	}
}

// intField reads a whole number from 1 to most.
func intField(to *int, most int64) func(value) {
	var n int64
	read := boundedInt(&n, most)
	return func(v value) {
		read(v)
		*to = int(n)
	}
}

// completionsPath is a path that users often copy along with the base URL.
const completionsPath = "/chat/completions"

// providerURL reads the base URL of a provider and drops trailing slashes.
func providerURL(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		switch u, err := url.Parse(text); {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.failRedacted("must be an address", "for example https://api.example.com/v1")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			v.failRedacted("has more than scheme, host and path", "a key is written as apiKey: ${NAME}")
		case strings.HasSuffix(strings.TrimRight(u.Path, "/"), completionsPath):
			v.fail("ends in "+completionsPath+", which every request adds", "leave it out, as https://api.example.com/v1")
		default:
			*to = strings.TrimRight(text, "/")
		}
	}
}

// secretField reads a secret, which must be written as a variable because
// documents are stored with every task. The variable may be unset: the error
// comes when the secret is used.
func secretField(to *Secret, from *string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.ScalarNode {
			v.failRedacted("must be a variable", "for example ${OPENAI_API_KEY}")
			return
		}
		name, ok := strings.CutPrefix(v.node.Value, "${")
		name, closed := strings.CutSuffix(name, "}")
		name, _, fallback := strings.Cut(name, ":")
		if !ok || !closed || fallback || !isVariable(name) {
			v.failRedacted("must be only a variable, because documents are stored with every task", "write ${OPENAI_API_KEY}, for example, and set that variable")
			return
		}
		*to, *from = v.keyFromEnv(name), name
	}
}

// keyFromEnv returns the value of a variable as a key, without surrounding white
// space, which shells and editors add.
func (v value) keyFromEnv(variable string) Secret {
	text, _ := v.doc.env(variable)
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.failRedacted("variable "+clip(variable)+" is not a valid key: it has characters that are not printable ASCII", "set it again")
		return ""
	}
	return Secret(text)
}

// temperatureField reads a number from 0 to maxTemperature.
func temperatureField(to **float64) func(value) {
	return func(v value) {
		if f, ok := v.number(maxTemperature); ok {
			*to = &f
		}
	}
}

// priceField reads an amount of money and stores it in billionths.
func priceField(to *int64) func(value) {
	const billion = 1e9
	return func(v value) {
		f, ok := v.number(maxPrice)
		if !ok {
			return
		}
		if *to = int64(math.Round(f * billion)); *to == 0 && f > 0 {
			v.fail("is less than a billionth, the smallest amount, and would count as 0", "")
		}
	}
}

// number returns a number from 0 to most. It may be in a variable.
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

// fallbackList reads a list of names of models. It rejects self.
func fallbackList(self string, to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of models", "for example [cheap, local]")
			return
		}
		for _, entry := range v.items() {
			var name string
			switch referenceField("model", &name)(entry); name {
			case "":
			case self:
				entry.fail("names the model itself", "a fallback is used when this model has failed")
			default:
				*to = append(*to, name)
			}
		}
	}
}

// includeFile reads the file that v names, relative to the document, and records
// it in Config.Files.
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
