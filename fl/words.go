package fl

// MethodWords is what a method is, in half a sentence; empty: it is not registered.
func MethodWords(kind string) string { return methods[kind].Words }

// ProtectionWords is what a protection protects, in half a sentence; empty: it is not
// registered.
func ProtectionWords(name string) string { return protections[name].Words }
