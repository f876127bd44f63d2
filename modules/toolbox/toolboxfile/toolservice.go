package toolboxfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// ToolService is a document of kind toolService: a service behind a broker that tools of type
// tool-service call.
//
//	kind: toolService
//	name: joke-service
//	request-queue: non-persistent://tg/request/joke
//	response-queue: non-persistent://tg/response/joke
//	config-params: [{name: style, required: false}]
type ToolService struct {
	Name              string
	Broker            string // name of a document of kind broker; "" is the only one
	Request, Response protocol.Topic
	Params            []ServiceParam
	UntypedArguments  bool // arguments are passed on unchecked, as TrustGraph does

	Timeout          time.Duration // of one call; 0 is not set
	MaxResponseBytes int           // of one response; 0 is not set
	MaxConcurrent    int           // calls at a time; 0 is not set

	Labels Labels `json:",omitzero"` // of its tools that have none of their own
	Pos    yamldoc.Pos
}

// ServiceParam is a value that a tool of a service may or must have.
type ServiceParam struct {
	Name     string
	Required bool
}

// ServiceCall is what a tool of type tool-service calls.
type ServiceCall struct {
	Service string          // name of the service
	Values  json.RawMessage // a JSON object: the values of its parameters, with sorted keys
}

// readToolService reads a document of kind toolService.
func readToolService(it item) {
	it.DeclareItem()
	s := ToolService{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.MergeFields(LabelFields(it.Item, &s.Labels), yamldoc.Fields{
		"id":               it.sameAsName,
		"broker":           it.ReferenceField("broker", &s.Broker),
		"request-queue":    topicField(&s.Request, "request"),
		"response-queue":   topicField(&s.Response, "response"),
		"config-params":    paramList(&s.Params),
		"untypedArguments": yamldoc.BoolField(&s.UntypedArguments),
		"timeout":          yamldoc.DurationField(&s.Timeout, maxQueryTime),
		"maxResponseBytes": yamldoc.IntField(&s.MaxResponseBytes, maxResponseBytes),
		"maxConcurrent":    yamldoc.IntField(&s.MaxConcurrent, maxServiceCalls),
	}))
	it.RequireFields("request-queue", "response-queue")
	it.r.services = append(it.r.services, it.Value)
	it.r.to.ToolServices = append(it.r.to.ToolServices, s)
}

// maxServiceCalls is the largest value of maxConcurrent.
const maxServiceCalls = 10_000

// sameAsName reads the field id of TrustGraph, which is the name of the document.
func (it item) sameAsName(v yamldoc.Value) {
	if id, ok := v.ReadNonEmpty(); ok && it.Name != "" && id != it.Name {
		v.AddError("is not the name of the document, "+yamldoc.QuoteText(it.Name), "leave the field out, or write the name")
	}
}

// topicField reads a queue.
func topicField(to *protocol.Topic, class string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		t, err := protocol.ParseTopic(text)
		switch {
		case err != nil:
			v.AddError(yamldoc.QuoteText(text)+" is not a queue", "for example non-persistent://tg/"+class+"/joke or "+class+":tg:joke")
		case t.Class != class:
			v.AddError("is a queue of the class "+t.Class, "write a queue of the class "+class)
		default:
			*to = t
		}
	}
}

// maxServiceParams is the largest number of config-params of one service.
const maxServiceParams = 100

// paramList reads the parameters of a service. A text is the name of one.
func paramList(to *[]ServiceParam) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() || len(v.Node.Content) > maxServiceParams {
			v.AddTypeError(fmt.Sprintf("a list of at most %d parameters", maxServiceParams), "for example [{name: style, required: false}]")
			return
		}
		for _, entry := range v.ListItems() {
			var p ServiceParam
			if entry.IsMapping() {
				entry.ReadFields(yamldoc.Fields{"name": yamldoc.NonEmptyField(&p.Name), "required": yamldoc.BoolField(&p.Required)})
			} else {
				p.Name, _ = entry.ReadNonEmpty()
			}
			checkParam(entry, p, *to)
			*to = append(*to, p)
		}
	}
}

// checkParam reports a parameter that a tool cannot have, or that is there twice.
func checkParam(v yamldoc.Value, p ServiceParam, before []ServiceParam) {
	switch {
	case p.Name == "":
		v.AddError("has no name", "for example {name: style, required: false}")
	case slices.ContainsFunc(before, func(o ServiceParam) bool { return o.Name == p.Name }):
		v.AddError("parameter "+yamldoc.QuoteText(p.Name)+" is declared twice", "leave one out")
	case slices.Contains(serviceToolFields, p.Name):
		v.AddError(yamldoc.QuoteText(p.Name)+" is a field of every tool, so a tool cannot have a value of this name", "choose another name")
	}
}

// serviceToolFields are the fields of a tool of type tool-service. Every other field is a value
// of the service.
var serviceToolFields = []string{
	"kind", "name", "type", "description", "service", "arguments", "ui", "of",
	"group", "state", "available_in_states", "applicable-states", "effect", "flags",
}

// pendingServiceTool is a tool of type tool-service that waits for its service.
type pendingServiceTool struct {
	index     int // in Declarations.Tools
	serviceAt yamldoc.Value
	values    map[string]yamldoc.Value
}

// serviceToolFieldsOf returns the fields of a tool that calls a service.
func serviceToolFieldsOf(it item, p *pendingTool) yamldoc.Fields {
	call := &ServiceCall{}
	p.tool.Service, p.values = call, map[string]yamldoc.Value{}
	values := map[string]json.RawMessage{}
	fields := yamldoc.Fields{
		"service": it.ReferenceField("toolService", &call.Service),
		"arguments": func(v yamldoc.Value) {
			specList(&p.specs, "arguments")(v)
			for i := range p.specs {
				p.specs[i].Type = argumentType(p.specs[i].Type)
			}
		},
	}
	for key, value := range it.MapPairs() {
		name := key.Node.Value
		if slices.Contains(serviceToolFields, name) {
			continue
		}
		fields[name] = func(v yamldoc.Value) { values[name] = v.ReadJSON() }
		p.values[name] = value
	}
	p.finish = func() {
		call.Values, _ = json.Marshal(values) // read from YAML, so it is JSON
		if p.usesClaims() {
			it.MissingField("arguments").AddError("an argument of a tool service comes from the model", "leave out authServices")
			return
		}
		p.compile(nil)
		p.tool.cacheable = false
	}
	return fields
}

// argumentType returns the type of a parameter for a type as TrustGraph writes it.
func argumentType(name string) string {
	switch name {
	case "number":
		return parameter.TypeFloat
	case "int":
		return parameter.TypeInteger
	case "bool":
		return parameter.TypeBoolean
	case "object":
		return parameter.TypeMap
	}
	return name
}

// checkServiceTools checks the values of tools against the parameters of their services.
func (r *Reader) checkServiceTools() {
	services := map[string]ToolService{}
	for _, s := range r.to.ToolServices {
		services[s.Name] = s
	}
	for _, p := range r.serviceTools {
		t := &r.to.Tools[p.index]
		if s, ok := services[t.Service.Service]; ok {
			checkValues(s, p)
		}
	}
	r.checkServices()
}

// checkServices finds the brokers of tool services, and reports a queue that two services own.
func (r *Reader) checkServices() {
	brokers, owners := r.set.ListNames("broker"), map[string]ToolService{}
	for i := range r.to.ToolServices {
		s := &r.to.ToolServices[i]
		switch {
		case s.Broker == "" && len(brokers) == 1:
			s.Broker = brokers[0]
		case s.Broker == "" && len(brokers) > 1:
			r.services[i].MissingField("broker").AddError("is missing", yamldoc.ListHint("name one of the brokers ", brokers))
		}
		queue := s.Broker + "\n" + s.Request.Subject()
		if owner, ok := owners[queue]; ok && owner.Name != s.Name && s.Request.Name != "" {
			at, _ := r.services[i].FindField("request-queue")
			at.AddError("is the queue of the tool service "+yamldoc.QuoteText(owner.Name)+" at "+owner.Pos.String(), "each service has a queue of its own")
			continue
		}
		owners[queue] = *s
	}
}

// checkValues reports values that a service does not know, and values that it lacks.
func checkValues(s ToolService, p pendingServiceTool) {
	var known []string
	for _, param := range s.Params {
		known = append(known, param.Name)
		if _, ok := p.values[param.Name]; !ok && param.Required {
			p.serviceAt.AddError(fmt.Sprintf("the service %s requires the value %s", yamldoc.QuoteText(s.Name), yamldoc.QuoteText(param.Name)), "add the field "+param.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(known, name) {
			hint := textutil.SuggestName(name, append(slices.Clone(known), serviceToolFields...))
			if hint == "" {
				hint = yamldoc.ListHint("its config-params are ", known)
			}
			p.values[name].AddError("is neither a field of a tool nor a value of the service "+yamldoc.QuoteText(s.Name), hint)
		}
	}
}
