package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// maxBody is the most bytes a request's body may have.
const maxBody = 1 << 20

// decode reads a body strictly: one object of known fields, spelled exactly,
// none of them null.
func decode[T any](r *http.Request) (T, error) {
	var v T
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		_, _ = io.CopyN(io.Discard, r.Body, maxRequest) // who is still sending reads no answer
		return v, errcode.New(BodyTooLarge, "the body has more than %d bytes", maxBody)
	}
	if err != nil {
		return v, errcode.Wrap(errcode.InvalidArguments, err, "the body could not be read")
	}
	if err := strictjson.Object(data, shapeOf(reflect.TypeFor[T]())); err != nil {
		return v, errcode.New(errcode.InvalidArguments, "the body is no JSON object that is safe to read: %v", err)
	}
	if err := noNulls(data); err != nil {
		return v, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, bodyError(err)
	}
	return v, nil
}

// shapeOf gives the names of a struct's fields, as strictjson wants them.
func shapeOf(t reflect.Type) *strictjson.KeySet {
	if t.Kind() != reflect.Struct {
		return nil
	}
	shape := new(strictjson.KeySet)
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		shape.Add(name, shapeOf(f.Type))
	}
	return shape
}

// noNulls refuses a field that is there and says nothing: whether that means
// "as before", "none" or "all" would be a guess.
func noNulls(data []byte) (err error) {
	gjson.ParseBytes(data).ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.Null {
			err = errcode.New(errcode.InvalidArguments, "field %q is null; leave it out or give it a value", key.Str).With("field", key.Str)
		}
		return err == nil
	})
	return err
}

// bodyError words what encoding/json found, without names of Go.
func bodyError(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return errcode.New(errcode.InvalidArguments, "the body has an %s", strings.TrimPrefix(err.Error(), "json: "))
	case e.Field == "":
		return errcode.New(errcode.InvalidArguments, "the body has a value that does not fit: %s", e.Value)
	}
	return errcode.New(errcode.InvalidArguments, "field %q does not take %s", e.Field, e.Value).With("field", e.Field)
}

// checkQuery refuses parameters that a route does not take, or more than one
// of a name.
func checkQuery(r *http.Request, takes []string) error {
	for name, values := range r.URL.Query() {
		if !slices.Contains(takes, name) {
			return errcode.New(errcode.InvalidArguments, "query parameter %q is not known here; known: %s", name, orNone(takes)).With("field", name)
		}
		if len(values) > 1 {
			return errcode.New(errcode.InvalidArguments, "query parameter %q is given %d times", name, len(values)).With("field", name)
		}
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// flag reads a query parameter that is 1 or 0, true or false; absent is false.
func flag(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, errcode.New(errcode.InvalidArguments, "query parameter %q is %q; it takes 1 or 0", name, text).With("field", name)
	}
	return on, nil
}

// among reads a query parameter that is one of some words; absent is "".
func among(r *http.Request, name string, words ...string) (string, error) {
	word := r.URL.Query().Get(name)
	if word != "" && !slices.Contains(words, word) {
		return "", errcode.New(errcode.InvalidArguments, "query parameter %q is %q; it takes one of %s", name, word, strings.Join(words, ", ")).With("field", name)
	}
	return word, nil
}
