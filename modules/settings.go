package modules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// DecodeSettings decodes the settings into a struct, to which into points. Fields without a setting
// keep their values, so the struct holds the defaults. It rejects a setting that the struct does not
// have. Errors have the code invalid_config, and name the setting and the type that it must have.
func (c Config) DecodeSettings(into any) error {
	if len(c.Settings) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(c.Settings))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one document")
		}
	}
	if err != nil {
		return errcode.New(errcode.InvalidConfig, "settings of module %q: %s", c.Name, settingsFault(err))
	}
	return nil
}

// settingsFault returns the text of an error of encoding/json. It uses the words of a configuration
// instead of the words of Go.
func settingsFault(err error) string {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	setting := e.Field
	if setting == "" {
		setting = "they" // the settings themselves are of the wrong type
	}
	return setting + " must be " + wantedType(e.Type) + ", not " + givenType(e.Value)
}

// wantedType describes the values that decode into a type.
func wantedType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of at least 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	}
	return "a value of another type"
}

// givenType describes a JSON value as encoding/json names it, such as "number 1.5".
func givenType(value string) string {
	kind, literal, _ := strings.Cut(value, " ")
	switch kind {
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	}
	if literal != "" {
		return "the " + kind + " " + literal
	}
	return "a " + kind
}
