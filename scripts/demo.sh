#!/bin/sh
# The main job on real data: fit, read the fitted model back, predict. Usage: demo.sh COMMAND FOLDER
set -eu
separatrix=$1
folder=$2
data=examples/data/banknote.csv

show() {
    printf '\n$ separatrix'
    printf ' %s' "$@"
    printf '\n'
    "$separatrix" "$@"
}

show fit "$data" --target class --model perceptron --save "$folder/model.sx" --plot "$folder/boundary.png"
show info "$folder/model.sx"

# The first five banknotes without their class, as new data would come.
head -n 6 "$data" | cut -d , -f 1-4 > "$folder/new.csv"
show predict "$folder/model.sx" "$folder/new.csv"

printf '\nThe picture: %s\n' "$folder/boundary.png"
