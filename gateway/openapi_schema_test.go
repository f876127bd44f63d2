package gateway

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

const modulePath = "github.com/rolecall/rolecall"

// fixedSchemas are the schemas of types that encode themselves.
var fixedSchemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage]():     {Description: "any JSON value"},
	reflect.TypeFor[wire.Object]():         {Type: "object", AdditionalProperties: &jsonschema.Schema{Description: "any JSON value"}},
	reflect.TypeFor[[]byte]():              {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[time.Time]():           {Type: "string", Format: "date-time"},
	reflect.TypeFor[toolgroups.GroupSet](): {Type: "array", Items: &jsonschema.Schema{Type: "string"}, Description: "ids of tool groups; [\"*\"] is every group"},
	reflect.TypeFor[org.ServiceID]():       {Types: []string{"null", "string"}},
	reflect.TypeFor[hosts.HostPattern]():   {Type: "string"},
	reflect.TypeFor[toolgroups.Gating]():   {Types: []string{"boolean", "string"}, Enum: []any{false, true, "strict"}},
	reflect.TypeFor[tool.Effect]():         {Type: "string", Enum: []any{"mutating", "idempotent", "readOnly"}},
	reflect.TypeFor[bounds.Rule]():         {Type: "object", Description: "a condition for each path of the arguments of a tool"},
	reflect.TypeFor[org.TextLines]():       {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
}

// openTypes are named texts whose constants are not all values.
var openTypes = []reflect.Type{
	reflect.TypeFor[errcode.Code](), reflect.TypeFor[toolgroups.GroupID](), reflect.TypeFor[toolgroups.GroupOwner](),
	reflect.TypeFor[identity.RoleID](), reflect.TypeFor[identity.AgentID](),
}

// eventBodies has a body of each type of events that the API shows.
var eventBodies = []journal.EventBody{
	journal.TaskStarted{}, journal.AgentSpawned{}, journal.AgentTerminated{}, journal.MessageSent{}, journal.MessageReceived{},
	journal.ModelAnswered{}, journal.ModelDelta{}, journal.ToolCall{}, journal.ToolResult{}, journal.ToolError{}, journal.StateTransition{},
	journal.RoleChanged{}, journal.GroupRegistered{}, journal.GroupUnregistered{}, journal.GroupOpened{}, journal.GroupClosed{}, journal.ItemChanged{}, journal.ContextCompressed{}, journal.TurnFailed{},
	journal.TaskDenied{}, journal.MailDropped{}, journal.BudgetWarning{}, journal.TaskPaused{}, journal.TaskRetried{}, journal.Paused{}, journal.Resumed{}, journal.TaskEnded{}, journal.UngroundedAnswer{}, journal.EventGap{},
	journal.QuestionAsked{}, journal.QuestionAnswered{}, journal.PromptGot{}, journal.ApprovalRequested{}, journal.ApprovalEscalated{}, journal.ApprovalDecided{}, journal.PatternEnded{},
}

// eventHeader has the fields that all events have.
type eventHeader struct {
	Seq    uint64           `json:"seq,omitempty"` // number of the event in the whole log
	At     time.Time        `json:"at"`
	Type   string           `json:"type"`
	Stream identity.AgentID `json:"stream,omitempty"`
	Task   identity.TaskID  `json:"task,omitempty"`
	Agent  identity.AgentID `json:"agent,omitempty"`
	Role   string           `json:"role,omitempty"`
}

// schemas makes the schemas of Go types: one component for each struct.
type schemas struct {
	t          *testing.T
	components map[string]any
	types      map[string]reflect.Type // by the name of the component
	sources    map[string]*source      // by the path of the package
	answered   map[string]bool         // components of answers, which may get further fields
}

func newSchemas(t *testing.T) *schemas {
	return &schemas{t: t, components: obj{}, types: map[string]reflect.Type{}, sources: map[string]*source{}, answered: map[string]bool{}}
}

// refTo returns a reference to the schema of a value's type, or the schema itself if it is no
// struct. Names of generic types are those of their arguments: TaskPage.
func (s *schemas) refTo(v any, answered bool) any {
	t := reflect.TypeOf(v)
	if t == reflect.TypeFor[journal.Event]() {
		s.addEvents()
		return ref("Event")
	}
	if fixed := fixedSchemas[t]; fixed != nil {
		return fixed
	}
	if t.Kind() != reflect.Struct {
		return obj{"type": "object"}
	}
	s.add(t, answered)
	return ref(componentName(t))
}

type obj = map[string]any

func ref(name string) obj { return obj{"$ref": "#/components/schemas/" + name} }

// componentName returns the name of the schema of a type.
func componentName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[wire.Events]():
		return "NewestEvents"
	case reflect.TypeFor[model.Message]():
		return "Message"
	}
	if strings.HasSuffix(t.PkgPath(), "/toolboxapi") {
		return "Toolbox" + t.Name()
	}
	base, arg, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return base
	}
	return strings.TrimSuffix(arg[strings.LastIndex(arg, ".")+1:], "]") + base
}

// isComponent reports whether a type has a schema of its own.
func isComponent(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.Name() != "" && fixedSchemas[t] == nil && t != reflect.TypeFor[journal.Event]()
}

// add adds the schema of a struct type, and of those that it has.
func (s *schemas) add(t reflect.Type, answered bool) {
	name := componentName(t)
	if known := s.types[name]; known != nil && known != t {
		s.t.Fatalf("%v and %v have the name %s", known, t, name)
	}
	if s.types[name] != nil && (s.answered[name] || !answered) {
		return
	}
	s.types[name], s.answered[name] = t, answered
	schema := s.structSchema(t, answered)
	schema.Description = s.docOf(t).types[baseName(t)]
	s.components[name] = schema
}

// baseName returns the name of a type in its source.
func baseName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// structSchema returns the schema of a struct, with references to those of its fields.
func (s *schemas) structSchema(t reflect.Type, answered bool) *jsonschema.Schema {
	known := map[reflect.Type]*jsonschema.Schema{}
	for fixed, schema := range fixedSchemas {
		known[fixed] = schema
	}
	for inner := range s.innerTypes(t) {
		if inner == reflect.TypeFor[journal.Event]() {
			s.addEvents()
			known[inner] = &jsonschema.Schema{Ref: "#/components/schemas/Event"}
			continue
		}
		s.add(inner, answered)
		known[inner] = &jsonschema.Schema{Ref: "#/components/schemas/" + componentName(inner)}
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		s.t.Fatal(err)
	}
	s.describeFields(t, schema)
	switch t {
	case reflect.TypeFor[wire.AgentRequest]():
		allowNull(schema, nullableAgentFields)
	case reflect.TypeFor[wire.FlowAgentRequest]():
		allowNull(schema, nullableFlowFields)
	case reflect.TypeFor[wire.RoleRequest]():
		s.addLimitsChange()
		schema.Properties["limits"].Ref = "#/components/schemas/" + limitsChange
		allowNull(schema, wire.NullableRoleFields())
	}
	if answered {
		schema.AdditionalProperties = nil
	}
	return schema
}

// limitsChange is the component of the limits in a RoleRequest, which may be null.
const limitsChange = "AgentLimitsChange"

// addLimitsChange adds the component limitsChange.
func (s *schemas) addLimitsChange() {
	schema := s.structSchema(reflect.TypeFor[org.AgentLimits](), false)
	allowNull(schema, wire.NullableLimits())
	schema.Description = "AgentLimitsChange are AgentLimits in a request. A limit that is null is removed."
	s.components[limitsChange] = schema
}

// innerTypes returns the types of the fields of a struct that have schemas of their own.
// Embedded structs have none: their fields are the struct's own.
func (s *schemas) innerTypes(t reflect.Type) map[reflect.Type]bool {
	found := map[reflect.Type]bool{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || jsonName(f) == "-" {
			continue
		}
		inner := f.Type
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, inner.Kind()) && fixedSchemas[inner] == nil {
			inner = inner.Elem()
		}
		if isComponent(inner) || inner == reflect.TypeFor[journal.Event]() {
			found[inner] = true
		}
	}
	return found
}

// describeFields sets what reflection does not show: comments, the words of named texts, and
// which fields may be absent. No field is null, unless its type says so.
func (s *schemas) describeFields(t reflect.Type, schema *jsonschema.Schema) {
	for _, f := range reflect.VisibleFields(t) {
		property := schema.Properties[jsonName(f)]
		if f.Anonymous || property == nil {
			continue
		}
		owner, viaPointer := fieldOwner(t, f)
		if viaPointer {
			schema.Required = slices.DeleteFunc(schema.Required, func(name string) bool { return name == jsonName(f) })
		}
		doc := s.docOf(owner)
		if text := doc.fields[cmp.Or(doc.defined[baseName(owner)], baseName(owner))+"."+f.Name]; text != "" {
			property.Description = text
		}
		if f.Type != reflect.TypeFor[org.ServiceID]() {
			dropNull(property)
		}
		s.addWords(f.Type, property)
	}
}

// addWords sets the enum of a property whose type is a named text with constants.
func (s *schemas) addWords(t reflect.Type, property *jsonschema.Schema) {
	if t.Kind() == reflect.Slice && property.Items != nil {
		s.addWords(t.Elem(), property.Items)
		return
	}
	if t.Kind() != reflect.String || t.PkgPath() == "" || slices.Contains(openTypes, t) {
		return
	}
	for _, word := range s.docOf(t).words[t.Name()] {
		property.Enum = append(property.Enum, word)
	}
}

// dropNull removes null from the types of a schema.
func dropNull(schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	schema.Types = slices.DeleteFunc(schema.Types, func(name string) bool { return name == "null" })
	switch len(schema.Types) {
	case 0:
		schema.Types = nil
	case 1:
		schema.Type, schema.Types = schema.Types[0], nil
	}
	dropNull(schema.Items)
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Not == nil {
		dropNull(schema.AdditionalProperties)
	}
}

// allowNull lets fields of a request be null.
func allowNull(schema *jsonschema.Schema, names []string) {
	for _, name := range names {
		property := schema.Properties[name]
		schema.Properties[name] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{property, {Type: "null"}}, Description: property.Description}
		property.Description = ""
	}
}

// fieldOwner returns the struct that declares a field of t, and whether it is embedded as a
// pointer, so that the field may be absent.
func fieldOwner(t reflect.Type, f reflect.StructField) (owner reflect.Type, viaPointer bool) {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
		if t.Kind() == reflect.Pointer {
			t, viaPointer = t.Elem(), true
		}
	}
	return t, viaPointer
}

// jsonName returns the name of a field in JSON.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// addEvents adds a schema for each type of events, and Event, which is one of them.
func (s *schemas) addEvents() {
	if s.components["Event"] != nil {
		return
	}
	mapping, oneOf := obj{}, []any{}
	s.components["Event"] = obj{
		"description": "An event. type says which fields it has.", "oneOf": &oneOf,
		"discriminator": obj{"propertyName": "type", "mapping": mapping},
	}
	for _, body := range eventBodies {
		kind := string(body.EventType())
		name := "Event" + strings.TrimPrefix(reflect.TypeOf(body).Name(), "Event")
		s.components[name] = s.eventSchema(body)
		mapping[kind] = "#/components/schemas/" + name
		oneOf = append(oneOf, ref(name))
	}
}

// eventSchema returns the schema of events with a body.
func (s *schemas) eventSchema(body journal.EventBody) *jsonschema.Schema {
	t := reflect.TypeOf(body)
	schema, own := s.structSchema(reflect.TypeFor[eventHeader](), true), s.structSchema(t, true)
	for name, property := range own.Properties {
		schema.Properties[name] = property
	}
	kind := any(string(body.EventType()))
	schema.Properties["type"].Const = &kind
	schema.Required = append(schema.Required, own.Required...)
	schema.PropertyOrder = append(schema.PropertyOrder, own.PropertyOrder...)
	schema.Description = s.docOf(t).types[t.Name()]
	return schema
}

// source has the comments of a package, and the constants of its named types.
type source struct {
	types, fields map[string]string
	words         map[string][]string
	defined       map[string]string // names of types that other types are defined by
}

// docOf returns the source of the package of a type. It is read once.
func (s *schemas) docOf(t reflect.Type) *source {
	path := t.PkgPath()
	if s.sources[path] == nil {
		s.sources[path] = readSource(s.t, filepath.Join("..", filepath.FromSlash(strings.TrimPrefix(path, modulePath))))
	}
	return s.sources[path]
}

// readSource parses the files of a directory.
func readSource(t *testing.T, dir string) *source {
	t.Helper()
	out := &source{types: map[string]string{}, fields: map[string]string{}, words: map[string][]string{}, defined: map[string]string{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.GenDecl); ok {
				out.addDecl(decl)
			}
		}
	}
	return out
}

// addDecl adds a declaration of types or constants.
func (s *source) addDecl(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = oneLine(decl.Doc, spec.Doc)
			switch definition := spec.Type.(type) {
			case *ast.StructType:
				s.addFields(spec.Name.Name, definition)
			case *ast.Ident:
				s.defined[spec.Name.Name] = definition.Name
			}
		case *ast.ValueSpec:
			kind, ok := spec.Type.(*ast.Ident)
			if decl.Tok != token.CONST || !ok || len(spec.Values) != 1 {
				continue
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				word, _ := strconv.Unquote(literal.Value)
				s.words[kind.Name] = append(s.words[kind.Name], word)
			}
		}
	}
}

// addFields adds the comments of the fields of a struct.
func (s *source) addFields(owner string, fields *ast.StructType) {
	for _, f := range fields.Fields.List {
		for _, name := range f.Names {
			s.fields[owner+"."+name.Name] = oneLine(f.Doc, f.Comment)
		}
	}
}

// oneLine returns the first comment that is not empty as one line.
func oneLine(list ...*ast.CommentGroup) string {
	for _, c := range list {
		if text := strings.Join(strings.Fields(c.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}

// The document has the fields of every public event.
func TestOpenAPI_HasEveryEventType(t *testing.T) {
	var described []journal.EventType
	for _, b := range eventBodies {
		described = append(described, b.EventType())
	}
	for _, want := range journal.EventTypes() {
		if !slices.Contains(described, want) {
			t.Errorf("no schema of the event %s", want)
		}
	}
}
