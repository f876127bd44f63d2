package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/parameter"
)

// requestFields returns the fields of a tool that sends an HTTP request.
func requestFields(it docItem, p *pendingTool) []field {
	r := new(HTTPRequest)
	p.tool.HTTP = r
	return []field{
		{"method", httpMethod(&r.Method)},
		{"path", requestPath(&r.Path)},
		{"headers", secretMap(&r.Headers, headerName)},
		{"requestBody", textField(&r.Body)},
		{"pathParams", p.partParams("pathParams", &r.PathParams)},
		{"queryParams", p.partParams("queryParams", &r.QueryParams)},
		{"bodyParams", p.partParams("bodyParams", &r.BodyParams)},
		{"headerParams", p.headerParams(&r.HeaderParams)},
	}
}

// partParams reads the parameters of one part of a request and stores their names.
func (p *pendingTool) partParams(name string, to *[]string) func(value) {
	return func(v value) {
		var list []parameter.Spec
		specList(&list, name)(v)
		for _, spec := range list {
			*to = append(*to, spec.Name)
		}
		p.specs = append(p.specs, list...)
	}
}

// headerParams reads the parameters that are headers. They must be strings.
func (p *pendingTool) headerParams(to *[]string) func(value) {
	return func(v value) {
		before := len(p.specs)
		p.partParams("headerParams", to)(v)
		for _, spec := range p.specs[before:] {
			at := p.locate(spec.At)
			if _, problem := headerName(spec.Name); problem != "" && spec.Name != "" {
				at.fail(quote(spec.Name)+" "+problem, "")
			}
			if spec.Type != parameter.TypeString && spec.Type != "" {
				at.missing("type").fail("a header parameter must be of type string, not "+quote(spec.Type), "")
			}
		}
	}
}

// httpMethod reads the method of a request, in any case, and stores it in upper
// case.
func httpMethod(to *string) func(value) {
	known := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		if text = strings.ToUpper(text); !slices.Contains(known, text) {
			v.fail(quote(v.node.Value)+" is unknown", cmp.Or(Suggest(text, known), listHint("there are ", known)))
			return
		}
		*to = text
	}
}

// requestPath reads a path that is relative to the source's URL. It rejects a host,
// which would send the source's headers elsewhere.
func requestPath(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		fixed, _, _ := strings.Cut(text, "{{")
		if strings.HasPrefix(text, "//") || strings.Contains(fixed, "://") {
			v.failRedacted("contains a host; the path is relative to the baseUrl of the source", "for example /flights/{{.number}}")
			return
		}
		*to = text
	}
}
