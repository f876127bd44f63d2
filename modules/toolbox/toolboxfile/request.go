package toolboxfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// requestFields returns the fields of a tool that sends an HTTP request.
func requestFields(it item, p *pendingTool) yamldoc.Fields {
	r := new(HTTPRequest)
	p.tool.HTTP = r
	return yamldoc.Fields{
		"method":       httpMethod(&r.Method),
		"path":         requestPath(&r.Path),
		"headers":      yamldoc.EmptyAsAbsent(yamldoc.SecretMap(&r.Headers, yamldoc.CheckHeaderName)),
		"requestBody":  yamldoc.TextField(&r.Body),
		"pathParams":   p.partParams("pathParams", &r.PathParams),
		"queryParams":  p.partParams("queryParams", &r.QueryParams),
		"bodyParams":   p.partParams("bodyParams", &r.BodyParams),
		"headerParams": p.headerParams(&r.HeaderParams),
	}
}

// partParams reads the parameters of one part of a request and stores their names.
func (p *pendingTool) partParams(name string, to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		var list []parameter.Spec
		yamldoc.EmptyAsAbsent(specList(&list, name))(v)
		for _, spec := range list {
			*to = append(*to, spec.Name)
		}
		p.specs = append(p.specs, list...)
	}
}

// headerParams reads the parameters that are headers. They must be strings.
func (p *pendingTool) headerParams(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := len(p.specs)
		p.partParams("headerParams", to)(v)
		for _, spec := range p.specs[before:] {
			at := p.LocatePath(spec.At)
			if _, problem := yamldoc.CheckHeaderName(spec.Name); problem != "" && spec.Name != "" {
				at.AddError(yamldoc.QuoteText(spec.Name)+" "+problem, "")
			}
			if spec.Type != parameter.TypeString && spec.Type != "" {
				at.MissingField("type").AddError("a header parameter must be of type string, not "+yamldoc.QuoteText(spec.Type), "")
			}
		}
	}
}

// httpMethod reads the method of a request, in any case, and stores it in upper
// case.
func httpMethod(to *string) func(yamldoc.Value) {
	known := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if text = strings.ToUpper(text); !slices.Contains(known, text) {
			v.AddError(yamldoc.QuoteText(v.Node.Value)+" is unknown", cmp.Or(textutil.SuggestName(text, known), yamldoc.ListHint("there are ", known)))
			return
		}
		*to = text
	}
}

// requestPath reads a path that is relative to the source's URL. It rejects a host,
// which would send the source's headers elsewhere.
func requestPath(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		fixed, _, _ := strings.Cut(text, "{{")
		if strings.HasPrefix(text, "//") || strings.Contains(fixed, "://") {
			v.AddRedactedError("contains a host; the path is relative to the baseUrl of the source", "for example /flights/{{.number}}")
			return
		}
		*to = text
	}
}
