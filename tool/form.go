package tool

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
)

// The limits of the schema of a question, and of its answer.
const (
	maxQuestionSchema = 16 << 10 // bytes
	maxFields         = 32
	maxAnswer         = 64 << 10 // bytes
)

// Field is one field of the form of a question.
type Field struct {
	Name        string
	Type        string          // string, number, integer, boolean or array
	Title       string          // "" if there is none
	Description string          // "" if there is none
	Required    bool            // the answer must have it, unless it has a default
	Default     json.RawMessage // nil if there is none
	Choices     []Choice        // what may be chosen; nil: anything
}

// Choice is one value of a field with choices.
type Choice struct{ Value, Title string }

// Fields returns the fields of the form in the order of the schema. A question without a schema, or
// with an invalid schema, has no fields. Titles and descriptions are not sanitized.
func (q Question) Fields() []Field {
	f, err := parseForm(q.Name, q.AnswerSchema())
	if err != nil || q.URL != "" {
		return nil
	}
	return f.fields
}

// form is a parsed schema of a question.
type form struct {
	schema *argschema.Schema
	fields []Field
}

// formSchema is what the schema of a question may have.
type formSchema struct {
	Draft       string          `json:"$schema"`
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Properties  json.RawMessage `json:"properties"`
	Required    []string        `json:"required"`
	Additional  *bool           `json:"additionalProperties"`
}

// fieldSchema is what the schema of a field may have.
type fieldSchema struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []titledValue   `json:"oneOf"`
	Items       *itemSchema     `json:"items"`
	Format      string          `json:"format"`
	Pattern     string          `json:"pattern"`
	MinLength   *json.Number    `json:"minLength"`
	MaxLength   *json.Number    `json:"maxLength"`
	Minimum     *json.Number    `json:"minimum"`
	Maximum     *json.Number    `json:"maximum"`
	MinItems    *json.Number    `json:"minItems"`
	MaxItems    *json.Number    `json:"maxItems"`
}

// itemSchema is what the items of a list of choices may have.
type itemSchema struct {
	Type  string        `json:"type"`
	Enum  []string      `json:"enum"`
	AnyOf []titledValue `json:"anyOf"`
	OneOf []titledValue `json:"oneOf"`
}

// titledValue is one choice with a title.
type titledValue struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// formats are the formats of texts. There is none for passwords: a question must not ask for a
// secret.
var formats = []string{"", "email", "uri", "date", "date-time"}

// parseForm parses the schema of a question.
func parseForm(name string, schema json.RawMessage) (*form, error) {
	reject := func(why string) error {
		return errcode.New(errcode.InvalidArguments, "question %s: the schema %s", name, why)
	}
	if len(schema) > maxQuestionSchema {
		return nil, reject("is larger than 16 KiB")
	}
	if schema == nil {
		return &form{}, nil
	}
	var doc formSchema
	if err := strictjson.CheckKeys(schema, nil); err != nil {
		return nil, reject("is not JSON: " + err.Error())
	}
	if err := decodeKnown(schema, &doc); err != nil || doc.Type != "object" {
		return nil, reject("must describe an object of texts, numbers, booleans and lists of choices")
	}
	fields, why := parseFields(doc)
	if why != "" {
		return nil, reject(why)
	}
	compiled, err := argschema.Compile(schema)
	if err != nil {
		return nil, reject("is not valid: " + errcode.Message(err))
	}
	return &form{compiled, fields}, nil
}

// parseFields returns the fields of a form in the order of the document, or why it is rejected.
func parseFields(doc formSchema) (fields []Field, why string) {
	if len(doc.Properties) == 0 {
		return nil, ""
	}
	d := json.NewDecoder(bytes.NewReader(doc.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, "has properties that are not an object"
	}
	for d.More() {
		name, _ := d.Token() // strict JSON, so it is a string
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, "is not JSON"
		}
		f, why := parseField(name.(string), raw)
		if why != "" {
			return nil, why
		}
		f.Required = slices.Contains(doc.Required, f.Name)
		if fields = append(fields, f); len(fields) > maxFields {
			return nil, "has more than 32 fields"
		}
	}
	return fields, ""
}

// parseField returns one field, or why it is rejected.
func parseField(name string, raw json.RawMessage) (f Field, why string) {
	var doc fieldSchema
	if err := decodeKnown(raw, &doc); err != nil {
		return f, "has a field " + textutil.Truncate(name, 80) + " with a keyword that questions do not have"
	}
	f = Field{Name: name, Type: doc.Type, Title: doc.Title, Description: doc.Description, Default: doc.Default}
	switch doc.Type {
	case "string":
		f.Choices = choicesOf(doc.Enum, doc.EnumNames, doc.OneOf)
	case "number", "integer", "boolean":
	case "array":
		if doc.Items == nil {
			return f, "has a list " + textutil.Truncate(name, 80) + " without choices"
		}
		f.Choices = choicesOf(doc.Items.Enum, nil, append(doc.Items.AnyOf, doc.Items.OneOf...))
		if len(f.Choices) == 0 {
			return f, "has a list " + textutil.Truncate(name, 80) + " without choices"
		}
	default:
		return f, "has a field " + textutil.Truncate(name, 80) + " that is not a text, a number, a boolean or a list of choices"
	}
	if !slices.Contains(formats, doc.Format) {
		return f, "has a field " + textutil.Truncate(name, 80) + " of another format than email, uri, date and date-time"
	}
	return f, ""
}

// choicesOf returns the choices of a field.
func choicesOf(values, names []string, titled []titledValue) (list []Choice) {
	for i, v := range values {
		c := Choice{Value: v, Title: v}
		if i < len(names) {
			c.Title = names[i]
		}
		list = append(list, c)
	}
	for _, t := range titled {
		list = append(list, Choice{Value: t.Const, Title: t.Title})
	}
	return list
}

// decodeKnown decodes a document that has only fields of v.
func decodeKnown(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// complete returns content with the fields of the form only, and with defaults. It validates it.
func (f *form) complete(content json.RawMessage) (json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(content) > maxAnswer {
		return nil, errcode.New(errcode.InvalidArguments, "it has more than 64 KiB")
	}
	if len(content) > 0 {
		if err := strictjson.CheckObject(content, nil); err != nil {
			return nil, errcode.New(errcode.InvalidArguments, "%v", err)
		}
		if err := json.Unmarshal(content, &given); err != nil {
			return nil, errcode.New(errcode.InvalidArguments, "%v", err)
		}
	}
	answer := map[string]json.RawMessage{}
	for _, field := range f.fields {
		if value, ok := given[field.Name]; ok {
			answer[field.Name] = value
		} else if field.Default != nil {
			answer[field.Name] = field.Default
		}
	}
	text, err := json.Marshal(answer)
	if err == nil {
		err = f.schema.Validate(text)
	}
	return text, err
}
