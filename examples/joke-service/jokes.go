package main

import "strings"

// jokes are the jokes by a word of the topic.
var jokes = []struct{ word, joke string }{
	{"program", "Why do programmers prefer dark mode? Because light attracts bugs!"},
	{"llama", "What do you call a llama that sings? A llama-diva!"},
	{"", "Why did the scarecrow win an award? It was outstanding in its field!"},
}

// pickJoke returns the first joke about a topic.
func pickJoke(topic string) string {
	for _, j := range jokes {
		if strings.Contains(strings.ToLower(topic), j.word) {
			return j.joke
		}
	}
	return ""
}
