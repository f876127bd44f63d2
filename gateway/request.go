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
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// maxBodyBytes limits the body of most requests.
const maxBodyBytes = 1 << 20

// decode parses a body strictly: one JSON object with known, exactly spelled
// fields, and no null values.
func decode[T any](r *http.Request) (T, error) {
	v, _, err := decodeNullable[T](r, nil)
	return v, err
}

// decodeOptional is decode for a request that may have no body.
func decodeOptional[T any](r *http.Request) (v T, err error) {
	if r.ContentLength == 0 {
		return v, nil
	}
	return decode[T](r)
}

// decodeNullable is decode for a body in which some fields may be null. It also returns the fields
// that are null.
func decodeNullable[T any](r *http.Request, nullable []string) (v T, nulls []string, err error) {
	data, err := readBody(r)
	if err != nil {
		return v, nil, err
	}
	nulls, err = decodeBytes(data, &v, nullable)
	return v, nulls, err
}

// bodyReadError returns the error for a body that could not be read, or has more than limit
// bytes. A nil error stays nil.
func bodyReadError(r *http.Request, err error, limit int) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		_, _ = io.CopyN(io.Discard, r.Body, wire.MaxRequestBytes) // a client that is still sending does not read the answer
		return errcode.New(wire.BodyTooLarge, "the body has more than %d bytes", limit)
	}
	if err != nil && errcode.CodeOf(err) != errcode.Unauthenticated { // the token was removed meanwhile
		err = errcode.Wrap(errcode.InvalidArguments, err, "the body could not be read")
	}
	return err
}

// decodeBytes decodes a body into v, a pointer to a struct, and returns the fields that are
// null.
func decodeBytes(data []byte, v any, nullable []string) (nulls []string, err error) {
	if err := strictjson.CheckDecodable(data, shapeOf(reflect.TypeOf(v).Elem())); err != nil {
		return nil, errcode.New(errcode.InvalidArguments, "the body is a malformed or ambiguous JSON object: %v", err)
	}
	if nulls, err = nullFields(data, nullable); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, bodyError(err)
	}
	return nulls, nil
}

// shapeOf returns the JSON field names of a struct type, or of the elements of a slice.
func shapeOf(t reflect.Type) *strictjson.Shape {
	switch t.Kind() {
	case reflect.Struct:
	case reflect.Slice:
		if fields := shapeOf(t.Elem()); fields != nil {
			return &strictjson.Shape{Items: fields}
		}
		return nil
	default:
		return nil
	}
	shape := new(strictjson.Shape)
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		shape.Add(name, shapeOf(f.Type))
	}
	return shape
}

// nullFields returns the fields that are null. It rejects null fields that are not in nullable,
// because null could mean "unchanged", "none" or "all". A name such as "limits.rounds" in nullable is
// that of a member of an object.
func nullFields(data []byte, nullable []string) (nulls []string, err error) {
	gjson.ParseBytes(data).ForEach(func(key, value gjson.Result) bool {
		switch {
		case value.IsObject():
			nulls = append(nulls, nullMembers(key.Str, value, nullable)...)
		case value.Type != gjson.Null:
		case slices.Contains(nullable, key.Str):
			nulls = append(nulls, key.Str)
		default:
			err = errcode.New(errcode.InvalidArguments, "field %q is null; leave it out or set a value", key.Str).With("field", key.Str)
		}
		return err == nil
	})
	return nulls, err
}

// nullMembers returns the members of the object in a field that are null and in nullable.
func nullMembers(field string, object gjson.Result, nullable []string) (nulls []string) {
	for _, name := range nullable {
		member, ok := strings.CutPrefix(name, field+".")
		if !ok {
			continue
		}
		if value := object.Get(member); value.Exists() && value.Type == gjson.Null {
			nulls = append(nulls, name)
		}
	}
	return nulls
}

// bodyError translates an error of encoding/json into a message without Go type
// names.
func bodyError(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return errcode.New(errcode.InvalidArguments, "the body has an %s", strings.TrimPrefix(err.Error(), "json: "))
	case e.Field == "":
		return errcode.New(errcode.InvalidArguments, "the body has a value of the wrong type: %s", e.Value)
	}
	return errcode.New(errcode.InvalidArguments, "field %q has a value of the wrong type: %s", e.Field, e.Value).With("field", e.Field)
}

// checkQuery rejects query parameters that are unknown, and parameters that are repeated and must
// not be.
func checkQuery(r *http.Request, known []parameter) error {
	for name, values := range r.URL.Query() {
		at := slices.IndexFunc(known, func(p parameter) bool { return p.name == name })
		if at < 0 {
			return errcode.New(errcode.InvalidArguments, "unknown query parameter %q; known: %s", name, orNone(paramNames(known))).With("field", name)
		}
		if len(values) > 1 && !known[at].repeats {
			return errcode.New(errcode.InvalidArguments, "query parameter %q is given %d times", name, len(values)).With("field", name)
		}
	}
	return nil
}

// paramNames lists the names of parameters.
func paramNames(list []parameter) (names []string) {
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}

// orNone joins names for a message.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// boolParam reads a boolean query parameter: 1 or 0, true or false. Absent is
// false.
func boolParam(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, errcode.New(errcode.InvalidArguments, "query parameter %q is %q; want 1 or 0", name, text).With("field", name)
	}
	return on, nil
}

// sinceParam reads the query parameter since, see wire.ParseTime. Absent is the zero time.
func sinceParam(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get("since")
	if text == "" {
		return time.Time{}, nil
	}
	return wire.ParseTime(text, time.Now())
}

// enumParam reads a query parameter that must be one of some words. Absent is
// "".
func enumParam[T ~string](r *http.Request, name string, words ...T) (T, error) {
	word := T(r.URL.Query().Get(name))
	if word == "" || slices.Contains(words, word) {
		return word, nil
	}
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	return "", errcode.New(errcode.InvalidArguments, "query parameter %q is %q; want one of %s", name, word, strings.Join(list, ", ")).With("field", name)
}
