// Search for ops by name or type.

/** Most ops that are listed. */
const FOUND = 50;
const search = document.getElementById("search");
const found = document.getElementById("found");

/** Steps whose op has these letters in its name or type; those of exactly this name first. */
function matches(wanted) {
  const letters = wanted.toLowerCase();
  const has = (name) => names[name].toLowerCase().includes(letters);
  const places = [...run.steps.keys()].filter((step) => run.steps[step].slice(1).some(has));
  const is_exact = (step) => run.name_of(step) === wanted;
  return [...places.filter(is_exact), ...places.filter((step) => !is_exact(step))];
}

function select(option) {
  for (const one of found.children) one.setAttribute("aria-selected", one === option);
  if (option) {
    search.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  } else search.removeAttribute("aria-activedescendant");
}

function close() {
  found.hidden = true;
  search.setAttribute("aria-expanded", "false");
}

function take(option) {
  if (!option) return;
  close();
  go(Number(option.dataset.step), 60);
  over.focus();
}

search.addEventListener("input", () => {
  found.replaceChildren();
  const wanted = search.value.trim();
  const places = wanted ? matches(wanted) : [];
  places.slice(0, FOUND).forEach((step, place) => {
    const option = element("li", found, run.describe(step), { role: "option", id: `found${place}`, "data-step": step });
    option.addEventListener("mousedown", () => take(option));
  });
  if (wanted && !places.length) element("li", found, "no op has this name or type");
  if (places.length > FOUND) element("li", found, `and ${places.length - FOUND} more`);
  found.hidden = !wanted;
  search.setAttribute("aria-expanded", Boolean(wanted));
  select(places.length ? found.firstElementChild : null);
});
search.addEventListener("keydown", (event) => {
  const chosen = found.querySelector("[aria-selected=true]");
  if (event.key === "Escape") {
    search.value = "";
    close();
    over.focus();
  } else if (event.key === "Enter") take(chosen);
  else if (event.key === "ArrowDown" && chosen) select(chosen.nextElementSibling?.id ? chosen.nextElementSibling : chosen);
  else if (event.key === "ArrowUp" && chosen) select(chosen.previousElementSibling || chosen);
  else return;
  event.preventDefault();
});
search.addEventListener("blur", close);
