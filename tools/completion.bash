# completion.bash - completes commands, options, their values and built-in names of heddle. `make install` puts it
# where bash looks; without that, source it from ~/.bashrc. It asks the program, so it is never out of date.

# The words that an option of `heddle choices` takes.
_heddle_values() {
  heddle choices --json | sed -n "/\"option\": \"--[a-z-]*\"/{/\"option\": \"$1\"/{s/.*\"values\": \"//;s/\".*//;s/,//g;/^N /!p}}" | tr ' ' '\n' | grep -v '[A-Z]'
}
_heddle() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} list=
  if [ "$COMP_CWORD" = 1 ]; then
    list=$(heddle help | sed -n 's/^  heddle \([a-z]*\).*/\1/p')
  elif [ "$previous" = --machine ] || [ "${COMP_WORDS[1]}" = machines ]; then
    list=$(heddle machines | sed 1d | cut -d' ' -f1)
  elif [ "${COMP_WORDS[1]}" = help ]; then
    list=$(heddle help | sed -n 's/^  heddle \([a-z]*\).*/\1/p')
  elif [ "${COMP_WORDS[1]}" = trace ] && [ "$COMP_CWORD" = 2 ]; then
    list=$(heddle trace --help | sed -n '/^questions$/,/^$/s/^  \([a-z]*\) .*/\1/p')
  elif [ "${COMP_WORDS[1]}" = trace ] && [ "${word#-}" != "$word" ]; then
    list=$(heddle trace "${COMP_WORDS[2]}" --help | grep -o '^  --[a-z0-9-]*')
  elif [ "${word#-}" != "$word" ]; then
    list=$(heddle "${COMP_WORDS[1]}" --help | grep -o '^  --[a-z0-9-]*')
  elif [ "${previous#--}" != "$previous" ]; then
    list=$(_heddle_values "$previous")
  elif [ "${COMP_WORDS[1]}" = schedule ] && [ "$COMP_CWORD" = 2 ]; then
    list=$(_heddle_values --schedule)
  elif [ "${COMP_WORDS[1]}" = ops ]; then
    list=$(heddle ops | sed 1d | cut -d' ' -f1)
  elif [ "${COMP_WORDS[1]}" = explain ]; then
    list=$(heddle explain | sed 1d | cut -d' ' -f1)
  elif [ "$COMP_CWORD" = 2 ]; then
    list=$(heddle show --list | sed 1d | cut -d' ' -f1)
  fi
  mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
}
complete -o default -F _heddle heddle
