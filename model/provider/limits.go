package provider

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// Limits are what a provider accepts of a Config. Fields are named as in documents of
// kind model.
type Limits struct {
	MaxTemperature float64
	AWS            bool                     // it is at AWS, and has the fields region and credentials
	Missing        []string                 // fields that the provider's API does not have
	Headers        []string                 // headers that the client sets
	Body           map[string]string        // fields of requests that the client sets, and the document's field for them or ""
	Check          func(Config) *FieldError // the protocol's own rules; may be nil
}

// FieldError is why a provider cannot be asked with a Config.
type FieldError struct{ Field, Message, Hint string }

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// requestHeaders are the headers of every request, which the client of HTTP sets.
var requestHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// CheckConfig returns the error of the first field of c that the provider does not accept,
// or nil.
func (l Limits) CheckConfig(c Config) *FieldError {
	for _, check := range []func(Config) *FieldError{l.checkMissing, l.checkTemperature, l.checkHeaders, l.checkBody, l.Check} {
		if check == nil {
			continue
		}
		if e := check(c); e != nil {
			return e
		}
	}
	return nil
}

// checkMissing rejects options that the provider's API does not have.
func (l Limits) checkMissing(c Config) *FieldError {
	o := c.Options
	given := map[string]bool{
		"thinking": o.Thinking != Thinking{}, "topP": o.TopP != nil, "seed": o.Seed != nil, "toolChoice": o.ToolChoice != "",
		"parallelToolCalls": o.ParallelTools != nil, "apiVersion": c.APIVersion != "",
	}
	for _, field := range l.Missing {
		if given[field] {
			return &FieldError{field, "is not in the API of this provider", "leave it out"}
		}
	}
	return nil
}

// checkTemperature rejects a temperature that is too high.
func (l Limits) checkTemperature(c Config) *FieldError {
	if c.Temperature == nil || *c.Temperature <= l.MaxTemperature {
		return nil
	}
	return &FieldError{"temperature", "must be a number from 0 to " + strconv.FormatFloat(l.MaxTemperature, 'g', -1, 64), "the models of this provider accept no more"}
}

// checkHeaders rejects headers that the client sets, and values that no header can have.
// Its errors do not contain the values.
func (l Limits) checkHeaders(c Config) *FieldError {
	for _, name := range slices.Sorted(maps.Keys(c.Header)) {
		key := http.CanonicalHeaderKey(name)
		if slices.Contains(requestHeaders, key) || slices.Contains(l.Headers, key) {
			return &FieldError{"headers." + name, "is set with every request", "a key is written as apiKey: ${NAME}"}
		}
		if !endpoint.IsHeaderValue(c.Header[name]) {
			return &FieldError{"headers." + name, "has a line break or another control character", "a header is one line"}
		}
	}
	return nil
}

// checkBody rejects fields of requests that the client sets. Servers may read the names
// of fields in upper case, lower case and with underscores, so all of these count. How a
// model thinks may be there instead of in Options, since models have levels of their own.
func (l Limits) checkBody(c Config) *FieldError {
	if c.Options.Body == nil {
		return nil
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(c.Options.Body, &body); err != nil {
		return &FieldError{"body", "is not a JSON object", ""}
	}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		for reserved, field := range l.Body {
			if foldName(name) != foldName(reserved) || field == "thinking" && c.Options.Thinking == (Thinking{}) {
				continue
			}
			hint := "leave it out"
			if field != "" {
				hint = "write the field " + field + " of the model"
			}
			return &FieldError{"body." + name, "is set with every request", hint}
		}
	}
	return nil
}

// foldName returns the name of a field without case and underscores.
func foldName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
