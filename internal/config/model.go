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

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/provider"
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

	Model   string         // the provider's name for the model
	BaseURL string         // "" is the provider's default
	Version string         `json:",omitempty"` // of the API; "" is the provider's default
	Key     yamldoc.Secret // "" if no key is needed or KeyFrom is not set
	KeyFrom string         // the environment variable of Key; "" if no key is needed or it is in a file
	KeyFile string         // the file of Key; "" if it is not in a file

	Stream        bool  // answers are streamed; true by default
	Images        *bool `json:",omitempty"` // whether the model sees images; nil: it does
	MaxTokens     int   // of an answer
	Temperature   *float64
	ContextWindow int // tokens of a request and its answer
	Concurrency   int // the largest number of concurrent requests
	Timeout       time.Duration
	Prices        Prices
	Fallback      []string // models to use when this one fails, in order

	KeyCommand *KeyCommand `json:",omitempty"` // prints the key; nil if it is from elsewhere

	AWS     AWS                       `json:",omitzero"`  // of a model at AWS
	Headers map[string]yamldoc.Secret `json:",omitempty"` // further headers of requests
	Options provider.Options          `json:",omitzero"`

	Models []string `json:",omitempty"` // of type first-available: the models to choose from, in order

	Pos yamldoc.Pos
}

// Prices are the prices of a million tokens, in billionths of a currency unit.
type Prices struct {
	Input, Output, Cached int64
	Currency              string // such as EUR; "" if the document names none
	Given                 bool   // the document has prices, even if they are 0
	Listed                bool   `json:",omitempty"` // they are from catalog.FindFacts
}

// isFree reports whether nothing costs.
func (p Prices) isFree() bool { return p.Input == 0 && p.Output == 0 && p.Cached == 0 }

// modelType is a type of model and the function that reads its fields.
type modelType struct {
	name string
	read func(item, *Model)
}

// Types of models that do not belong to a provider.
const (
	ModelScript = "script"
	ModelReplay = "replay"
	ModelHuman  = "human"

	// ModelFirstAvailable stands for the first of its models that has its key.
	ModelFirstAvailable = "first-available"
)

// modelTypes returns all types of models: those above and the providers of package
// catalog.
func modelTypes() []modelType {
	list := []modelType{{ModelScript, readFileModel}}
	for _, p := range catalog.ListProviders() {
		list = append(list, modelType{p.Type, readProvider(p)})
	}
	return append(list, modelType{ModelReplay, readFileModel}, modelType{ModelHuman, readHuman}, modelType{ModelFirstAvailable, readFirstAvailable})
}

// readModel reads a document of kind model. It leaves out a model of an unknown
// type, which it reports.
func readModel(it item) {
	it.DeclareItem()
	all := modelTypeNames()
	at, ok := it.FindField("type")
	if !ok {
		it.MissingField("type").AddError("is missing", yamldoc.ListHint("there are ", all))
		return
	}
	name, ok := at.ReadNonEmpty()
	if !ok {
		return
	}
	i := slices.Index(all, name)
	if i < 0 {
		at.AddError("model type "+yamldoc.QuoteText(name)+" is unknown", cmp.Or(textutil.SuggestName(name, all), yamldoc.ListHint("there are ", all)))
		return
	}
	m := Model{Name: it.Name, Type: name, Pos: it.Pos}
	modelTypes()[i].read(it, &m)
	it.r.config.Models = append(it.r.config.Models, m)
}

// modelTypeNames returns the names of modelTypes, in the same order.
func modelTypeNames() (all []string) {
	for _, t := range modelTypes() {
		all = append(all, t.name)
	}
	return all
}

// readHuman reads a model without further fields.
func readHuman(it item, _ *Model) { it.ReadFields(yamldoc.Fields{"type": yamldoc.SkipField}) }

// readFileModel reads a model of type script or replay, which names a file.
func readFileModel(it item, m *Model) {
	it.ReadFields(yamldoc.Fields{"type": yamldoc.SkipField, "file": func(v yamldoc.Value) { m.File, m.Source = it.r.includeFile(v) }})
	if _, ok := it.FindField("file"); !ok {
		it.MissingField("file").AddError("is missing", "a model of type "+m.Type+" names its file")
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
// in the provider's variable unless the document names another.
func readProvider(p catalog.Provider) func(item, *Model) {
	return func(it item, m *Model) {
		m.Stream = true
		var key yamldoc.SecretSource
		fields := yamldoc.MergeFields(it.providerFields(m, &key), optionFields(m))
		if p.Limits.AWS {
			fields = yamldoc.MergeFields(fields, awsFields(m))
		}
		it.ReadFields(fields)
		if _, ok := it.FindField("model"); !ok {
			it.MissingField("model").AddError("is missing", "it is the provider's name for the model")
		}
		it.completeKey(m, p, key)
		_, m.Prices.Given = it.FindField("prices")
		it.r.deferCheck(it.requirePrices)
		it.r.deferCheck(it.requireOneCurrency)
		it.checkModel(m, p)
	}
}

// providerFields returns the fields that the models of all providers have.
func (it item) providerFields(m *Model, key *yamldoc.SecretSource) yamldoc.Fields {
	return yamldoc.Fields{
		"type":           yamldoc.SkipField,
		"model":          yamldoc.NonEmptyField(&m.Model),
		"baseURL":        yamldoc.FileAllowed(providerURL(&m.BaseURL)),
		"apiVersion":     versionField(&m.Version),
		"apiKey":         keyField(m, key),
		"stream":         yamldoc.BoolField(&m.Stream),
		"images":         yamldoc.OptionalBool(&m.Images),
		"maxTokens":      yamldoc.IntField(&m.MaxTokens, maxModelTokens),
		"temperature":    numberField(&m.Temperature, maxTemperature),
		"contextWindow":  yamldoc.IntField(&m.ContextWindow, maxModelTokens),
		"maxConcurrency": yamldoc.IntField(&m.Concurrency, maxConcurrency),
		"timeout":        yamldoc.DurationField(&m.Timeout, maxModelTime),
		"prices": yamldoc.MappingField(yamldoc.Fields{
			"input":  priceField(&m.Prices.Input),
			"output": priceField(&m.Prices.Output),
			"cached": priceField(&m.Prices.Cached),

			"currency": currencyField(&m.Prices.Currency),
		}),
		"fallback": modelList(it, &m.Fallback, "a fallback is used when this model has failed"),
	}
}

// completeKey records where the key of a model is. Without apiKey it is in the provider's
// variable; a server of the document's own needs none.
func (it item) completeKey(m *Model, p catalog.Provider, key yamldoc.SecretSource) {
	_, signed := it.FindField("credentials")
	_, given := it.FindField("apiKey")
	if given {
		m.KeyFrom, m.KeyFile = key.Variable, key.File
	}
	if !given && !signed && m.BaseURL == "" {
		m.KeyFrom, m.Key = p.KeyVariable, it.MissingField("apiKey").LookupKey(p.KeyVariable)
	}
	if p.Limits.AWS {
		it.completeAWS(m, given)
	}
}

// checkModel rejects combinations of fields that are valid one by one.
func (it item) checkModel(m *Model, p catalog.Provider) {
	if m.ContextWindow > 0 && m.MaxTokens >= m.ContextWindow {
		at, _ := it.FindField("maxTokens")
		at.AddError("leaves no tokens for the request: the contextWindow covers both", "use "+strconv.Itoa(m.ContextWindow/4)+", for example")
	}
	if e := p.Limits.CheckConfig(m.ProviderConfig()); e != nil {
		at := it.LocatePath(e.Field)
		if strings.HasPrefix(e.Field, "headers.") { // whose values may be secret
			at.AddRedactedError(e.Message, e.Hint)
			return
		}
		at.AddError(e.Message, e.Hint)
	}
}

// redundantPath returns the end of a base URL that users often copy along with it, or "".
// Every request adds it.
func redundantPath(u *url.URL) string {
	for _, path := range [...]string{"/chat/completions", "/responses"} {
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), path) {
			return path
		}
	}
	return ""
}

// providerURL reads the base URL of a provider and drops trailing slashes.
func providerURL(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		switch u, err := url.Parse(text); {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.AddRedactedError("must be an address", "for example https://api.example.com/v1")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			v.AddRedactedError("has more than scheme, host and path", "a key is written as apiKey: ${NAME}")
		case redundantPath(u) != "":
			v.AddError("ends in "+redundantPath(u)+", which every request adds", "leave it out, as https://api.example.com/v1")
		default:
			*to = strings.TrimRight(text, "/")
		}
	}
}

// billionths returns an amount of money in billionths.
func billionths(amount float64) int64 { return int64(math.Round(amount * 1e9)) }

// priceField reads an amount of money and stores it in billionths.
func priceField(to *int64) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		f, ok := v.ReadNumber(maxPrice)
		if !ok {
			return
		}
		if *to = billionths(f); *to == 0 && f > 0 {
			v.AddError("is less than a billionth, the smallest amount, and would count as 0", "")
		}
	}
}

// currencyField reads the code of a currency: three capital letters, as in ISO 4217.
func currencyField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if len(text) != 3 || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			v.AddError("must be the code of a currency, not "+yamldoc.QuoteText(text), "three capital letters, for example EUR or USD")
			return
		}
		*to = text
	}
}

// modelList reads a list of names of models. It rejects the model itself, for which hint
// is the reason.
func modelList(it item, to *[]string, hint string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of models", "for example [cheap, local]")
			return
		}
		for _, entry := range v.ListItems() {
			var name string
			switch it.ReferenceField("model", &name)(entry); name {
			case "":
			case it.Name:
				entry.AddError("names the model itself", hint)
			default:
				*to = append(*to, name)
			}
		}
	}
}

// includeFile reads the file that v names, relative to the document, and records
// it in Config.Files.
func (r *reader) includeFile(v yamldoc.Value) (path string, data []byte) {
	name, ok := v.ReadNonEmpty()
	if !ok {
		return "", nil
	}
	path = v.FilePath(filepath.Clean(name))
	data, err := r.include(path)
	if err != nil {
		v.AddError(yamldoc.QuoteText(path)+": "+fileReason(err), "a file is named relative to its document")
		return path, nil
	}
	return path, data
}
