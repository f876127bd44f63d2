package config

import "github.com/rolecall/rolecall/internal/textutil"

// plainName is the form of names that stand in requests, URLs and labels. No such name looks like
// a path.
var plainName = textutil.LazyPattern(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

const plainNameProblem = "must be letters, digits, ., _ and -, at most 64, and begin with a letter or digit"

// checkPlainName adds an error unless the name of the document, if it has one, is a plainName. why
// says what the name is used for.
func (it item) checkPlainName(why string) {
	if it.Name != "" && !plainName().MatchString(it.Name) {
		it.NameAt.AddError(plainNameProblem, why)
	}
}
