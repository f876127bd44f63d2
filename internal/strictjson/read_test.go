package strictjson_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/strictjson"
)

func ExampleRead() {
	path := &strictjson.Rules{Kinds: strictjson.IsString, Strings: &strictjson.StringRule{
		Length: strictjson.Range{Min: 1, Max: 9},
		Match:  regexp.MustCompile(`^[a-z.]+$`),
	}}
	shape := &strictjson.KeySet{Rules: &strictjson.Rules{Kinds: strictjson.IsObject}}
	shape.Add("path", &strictjson.KeySet{Rules: path})
	for _, doc := range []string{`{"path": "a.txt"}`, `{"path": ""}`, `{"path": ["a.txt"], "more": [1, 2]}`, `{"Path": "a.txt"}`} {
		fmt.Println(strictjson.Read([]byte(doc), shape))
	}
	// Output:
	// {true 2} <nil>
	// {false 2} <nil>
	// {false 6} <nil>
	// {false 0} key "Path" differs from "path" in case only: write "path" at byte 1
}

func TestRead_ZeroRulesAllowNothing(t *testing.T) {
	shape := new(strictjson.KeySet)
	shape.Add("v", &strictjson.KeySet{Rules: new(strictjson.Rules)})
	for _, value := range []string{`null`, `true`, `false`, `0`, `0.5`, `""`, `[]`, `{}`} {
		r, err := strictjson.Read([]byte(`{"v":`+value+`}`), shape)
		if err != nil || r.Valid {
			t.Errorf("%s: got %+v, %v, want Valid false", value, r, err)
		}
	}
}

func TestRead_NoRulesAllowEverything(t *testing.T) {
	for _, shape := range []*strictjson.KeySet{nil, new(strictjson.KeySet)} {
		if r, err := strictjson.Read(exampleDocument(), shape); err != nil || !r.Valid {
			t.Errorf("got %+v, %v, want Valid true", r, err)
		}
	}
}

// The oracle for numbers is math/big.
func TestRead_ComparesNumbersExactly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		limit, step, value := randomDecimal(random, 20), randomDecimal(random, 5), randomDecimal(random, 18)
		if n, want, ok := randomRule(random, newRat(limit), newRat(step), newRat(value)); ok {
			shape := new(strictjson.KeySet)
			shape.Add("v", &strictjson.KeySet{Rules: &strictjson.Rules{Kinds: strictjson.IsNumber, Numbers: n}})
			r, err := strictjson.Read([]byte(`{"v":`+value+`}`), shape)
			if err != nil || r.Valid != want {
				t.Fatalf("%s with limit %s and step %s, %+v: got %v, %v, want %v; seed %d", value, limit, step, n, r.Valid, err, want, seed)
			}
		}
	}
}

// randomRule returns a rule and whether value satisfies it. ok is false if a NumberRule cannot
// represent the rule.
func randomRule(random *rand.Rand, limit, step, value *big.Rat) (n *strictjson.NumberRule, want, ok bool) {
	n = strictjson.NewNumberRule()
	order, exclusive := value.Cmp(limit), random.IntN(2) == 0
	switch random.IntN(4) {
	case 0:
		ok = n.AtLeast(limit, exclusive)
		return n, order > 0 || order == 0 && !exclusive, ok
	case 1:
		ok = n.AtMost(limit, exclusive)
		return n, order < 0 || order == 0 && !exclusive, ok
	case 2:
		n.Integer = true
		return n, value.IsInt(), true
	}
	if step.Sign() <= 0 {
		return n, true, true
	}
	n.MultipleOf, ok = strictjson.NewRatio(step)
	return n, new(big.Rat).Quo(value, step).IsInt(), ok
}

// randomDecimal returns a number of up to n characters, usually a short one.
func randomDecimal(random *rand.Rand, n int) string {
	n = 1 + random.IntN(1+random.IntN(n))
	digits := make([]byte, n)
	for i := range digits {
		digits[i] = '0' + byte(random.IntN(10)*random.IntN(2))
	}
	whole := new(big.Int)
	whole.SetString(string(digits[:(n+1)/2]), 10)
	text := whole.String()
	if n > 2 && random.IntN(2) == 0 {
		text += "." + string(digits[(n+1)/2:n-1])
	}
	if text[len(text)-1] == '.' {
		text += "0"
	}
	if random.IntN(3) == 0 {
		text = "-" + text
	}
	return text
}

func newRat(text string) *big.Rat {
	r, _ := new(big.Rat).SetString(text) // randomDecimal returns numbers
	return r
}

func TestRead_FindsNames(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 63, 64, 65, 300} {
		shape := new(strictjson.KeySet)
		var words []string
		for i := range n {
			word := fmt.Sprintf("%.*s%d", i%12, "abcdefghijkl", i*i)
			words = append(words, word)
			shape.Add(word, nil)
		}
		shape.Rules = &strictjson.Rules{Kinds: strictjson.IsObject, Objects: &strictjson.ObjectRule{Count: strictjson.Unbounded, Closed: true}}
		shape.Add("word", &strictjson.KeySet{Rules: &strictjson.Rules{Kinds: strictjson.IsString,
			Strings: &strictjson.StringRule{Length: strictjson.Unbounded, Enum: strictjson.NewEnum(words)}}})
		for i := range n {
			wantFound(t, shape, words[i], n, true)
			wantFound(t, shape, words[i]+"-", n, false)
			wantFound(t, shape, "x"+words[i][1:]+"y", n, false)
		}
		wantFound(t, shape, "", n, false)
	}
}

func wantFound(t *testing.T, shape *strictjson.KeySet, word string, n int, want bool) {
	t.Helper()
	for _, doc := range []any{map[string]any{"word": word}, map[string]any{word: 1}} {
		data, _ := json.Marshal(doc) // strings marshal
		if r, err := strictjson.Read(data, shape); err != nil || r.Valid != want {
			t.Errorf("%s among %d: got %v, %v, want %v", data, n, r.Valid, err, want)
		}
	}
}
