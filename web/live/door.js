"use strict";
// The secret comes behind the address's #, which browsers send to nobody, and is taken out of
// sight at once.
(async () => {
  const token = location.hash.slice(1), word = document.getElementById("word");
  if (!token) return;
  history.replaceState(null, "", "/");
  word.textContent = "One moment …";
  try {
    const reply = await fetch("/enter", { method: "POST", body: token, cache: "no-store" });
    const said = await reply.text();
    if (reply.ok) location.replace(said);
    else word.textContent = said.trim() + ".";
  } catch {
    word.textContent = "Nobody answers: has coterie dash ended?";
  }
})();
