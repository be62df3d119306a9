package data

import "slices"

// Pooled is the federation as one client that holds everybody's examples: for training in
// one place. What clients hold out is pooled as well. Clients that take no part in
// training stay as they are.
func (f *Federation) Pooled() *Federation {
	if len(f.Train) == 1 {
		return f
	}
	out := *f
	var held []*Client
	all := make([]*Client, len(f.Train))
	for i := range f.Train {
		if all[i] = &f.Train[i]; all[i].Held != nil {
			held = append(held, all[i].Held)
		}
	}
	one := Joined(all...)
	if len(held) > 0 {
		rest := Joined(held...)
		one.Held = &rest
	}
	out.Train = []Client{one}
	return &out
}

// Joined is a client with the examples of all, one client's after another's. What they
// hold out is left out.
func Joined(clients ...*Client) Client {
	one := Client{Name: "all", Rows: Rows{Features: clients[0].Features}}
	for _, c := range clients {
		for len(one.Sensitive) < len(c.Sensitive) {
			one.Sensitive = append(one.Sensitive, nil)
		}
		for i, groups := range c.Sensitive {
			one.Sensitive[i] = append(one.Sensitive[i], groups...)
		}
		if c.Images == nil {
			one.X, one.Y = append(one.X, c.X...), append(one.Y, c.Y...)
		}
	}
	if clients[0].Images != nil {
		one.Pictures = joinedPictures(clients)
	}
	return one
}

// joinedPictures are all clients' in one store: their own, if they share it.
func joinedPictures(clients []*Client) Pictures {
	first := clients[0].Images
	out := Pictures{Images: first}
	if !slices.ContainsFunc(clients, func(c *Client) bool { return c.Images != first }) {
		for _, c := range clients {
			out.Index = append(out.Index, c.Index...)
		}
		return out
	}
	store := &Images{Height: first.Height, Width: first.Width, Channels: first.Channels}
	for _, c := range clients {
		for _, i := range c.Index {
			out.Index = append(out.Index, store.Len())
			store.Pixels = append(store.Pixels, c.Images.picture(i)...)
			if c.Images.Targets != nil {
				store.Targets = append(store.Targets, c.Images.Targets[i])
			} else {
				store.Labels = append(store.Labels, c.Images.Labels[i])
			}
		}
	}
	out.Images = store
	return out
}

// With is the client with the examples of another behind its own.
func (c *Client) With(other *Client) Client {
	out := Joined(c, other)
	out.Group, out.Name, out.Held = c.Group, c.Name, c.Held
	return out
}
