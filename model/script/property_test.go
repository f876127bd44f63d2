package script_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// statements are the lines of random scripts. x has the results of the lines before.
var statements = []string{
	`x = [x, yield call("echo", {n: size(x)})];`,
	`x = [x, yield call("fail", {n: size(x)})];`,
	`x = [x, yield [call("echo", {n: size(x)}), call("fail"), call("echo", {state: self.state})]];`,
	`x = [x, yield []];`,
	`x = [x, (yield receive()).payload];`,
	`x = [x, (yield receive()).id];`,
	`yield say(digest(x));`,
	`x = [x, self.state, ...tools];`,
	`console.log(digest(x));`,
	`top++; x = [x, top];`,
	`if (size(x) % 2) return x;`,
	`if (size(x) % 11 === 10) null.x;`,
	`for (let i = size(x) % 3; i > 0; i--) x = [x, yield call("echo", {i})];`,
	`try { x = [x, Date.now()] } catch (e) { x = [x, e.message] }`,
}

// randomSource returns a script of the statements with the given indexes.
func randomSource(ops []int) string {
	var body strings.Builder
	for _, op := range ops {
		body.WriteString("\t" + statements[op] + "\n")
	}
	return `let top = 0;
const digest = (x) => JSON.stringify(x);
const size = (x) => digest(x).length;
role("root", function* (task) {
	let x = [task.payload];
` + body.String() + `	return x;
});`
}

// Property: a model that caches virtual machines, one that caches none, and one that loses
// them now and then return equal answers in every step of any script.
func TestModel_CacheDoesNotChangeAnswers(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = short.Count(10, 50)
	parameters.MaxShrinkCount = 50
	properties := gopter.NewProperties(parameters)
	properties.Property("cached, uncached and forgetful models agree", prop.ForAll(
		func(ops []int, worldSeed int64) (string, error) {
			return compareModels(t, randomSource(ops), rand.New(rand.NewSource(worldSeed))), nil
		},
		gen.SliceOf(gen.IntRange(0, len(statements)-1)), gen.Int64(),
	))
	properties.TestingRun(t)
}

// compareModels runs a script with random messages and states. It returns the first
// difference between the models, "" if there is none.
func compareModels(t *testing.T, source string, world *rand.Rand) string {
	cached, uncached := newModel(t, script.Config{}, source), newModel(t, script.Config{CacheSize: -1}, source)
	defer cached.Close()
	defer uncached.Close()
	forgetful := newModel(t, script.Config{}, source)
	defer func() { forgetful.Close() }()

	rt := newFakeRuntime("root")
	rt.omitTools = world.Intn(4) == 0
	for range 15 {
		changeWorld(rt, world)
		if world.Intn(3) == 0 {
			forgetful.Close()
			forgetful = newModel(t, script.Config{}, source)
		}
		a, failure := answerOrError(t, cached, rt.request())
		for name, other := range map[string]*script.Model{"uncached": uncached, "forgetful": forgetful} {
			b, otherFailure := answerOrError(t, other, rt.request())
			if diff := cmp.Diff(a, b); diff != "" || failure != otherFailure {
				return fmt.Sprintf("%s\n%s\ncached and %s model differ: %s\n%s %s", source, strings.Join(rt.lines, "\n"), name, diff, failure, otherFailure)
			}
		}
		if failure != "" {
			return ""
		}
		if world.Intn(6) > 0 { // else the answer is lost and the step is repeated
			rt.record(a)
		}
		if world.Intn(4) == 0 {
			rt.items = copyItems(rt.items)
		}
	}
	return ""
}

// changeWorld adds messages and may change the state and the tools.
func changeWorld(rt *fakeRuntime, world *rand.Rand) {
	for range world.Intn(3) {
		rt.addMessage(fmt.Sprint(world.Intn(100)))
	}
	if world.Intn(4) == 0 {
		rt.self.State = fmt.Sprint("s", world.Intn(3))
	}
	if world.Intn(4) == 0 {
		rt.tools = []string{"echo", "fail", "more"}[:world.Intn(4)]
	}
}

// answerOrError returns the answer of a model or the text of its error.
func answerOrError(t *testing.T, m *script.Model, r model.Request) (*model.Answer, string) {
	a, err := ask(t, m, r)
	if err != nil {
		return nil, err.Error()
	}
	return a, ""
}

// copyItems returns equal items that share no pointers, as after a restart.
func copyItems(items []model.Item) []model.Item {
	items = slices.Clone(items)
	for i, item := range items {
		switch {
		case item.Message != nil:
			entry := *item.Message
			items[i].Message = &entry
		case item.Answer != nil:
			entry := *item.Answer
			items[i].Answer = &entry
		case item.Result != nil:
			entry := *item.Result
			items[i].Result = &entry
		}
	}
	return items
}
