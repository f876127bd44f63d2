package toolboxfile

import (
	"fmt"

	"github.com/rolecall/rolecall/internal/hours"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// maxSpans is the largest number of spans of opening hours.
const maxSpans = 100

// hoursField reads the opening hours of a toolset. Hours with an error are set, too: they
// do not compile, so such a toolset never opens.
func hoursField(to **hours.Hours) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		*to = new(hours.Hours)
		if !v.IsMapping() {
			v.AddTypeError("a time zone and spans", `for example {zone: Europe/Berlin, open: ["mon-fri 08:00-18:00"]}`)
			return
		}
		v.ReadFields(yamldoc.Fields{"zone": zoneField(&(*to).Zone), "open": spansField(&(*to).Open)})
		for _, name := range []string{"zone", "open"} {
			if _, ok := v.FindField(name); !ok {
				v.MissingField(name).AddError("is missing", "hours have a zone, such as Europe/Berlin, and open, a list of spans")
			}
		}
	}
}

// zoneField reads the name of a time zone.
func zoneField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		name, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if _, err := hours.LoadZone(name); err != nil {
			v.AddError(yamldoc.QuoteText(v.Node.Value)+" is not a known time zone", "names are those of the IANA database, such as Europe/Berlin, America/New_York or UTC")
			return
		}
		*to = name
	}
}

// spansField reads the spans of opening hours.
func spansField(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		switch {
		case !v.IsList():
			v.AddTypeError("a list of spans", hours.SpanHint)
		case len(v.Node.Content) == 0:
			v.AddError("is empty, so the toolset would never open", "leave hours out to keep it open, or remove the toolset")
		case len(v.Node.Content) > maxSpans:
			v.AddError(fmt.Sprintf("has more than %d spans", maxSpans), "")
		default:
			for _, item := range v.ListItems() {
				readSpan(item, to)
			}
		}
	}
}

// readSpan reads one span and adds it to a list. An error does not show the value of a
// variable.
func readSpan(item yamldoc.Value, to *[]string) {
	text, ok := item.ReadNonEmpty()
	if !ok {
		return
	}
	if _, err := hours.ParseSpan(yamldoc.ClipText(text)); err != nil {
		message := err.Error()
		if text != item.Node.Value {
			message = yamldoc.QuoteText(item.Node.Value) + " is not a span of days and times"
		}
		item.AddError(message, hours.SpanHint)
		return
	}
	*to = append(*to, text)
}
