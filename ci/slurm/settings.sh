# shellcheck shell=bash disable=SC2034
# What submit, nightly.sbatch, merge.sbatch and health measure: a sample. `launchgap fleet plan` writes one for your nodes.
nodes=('n1:8' 'n2:8')
sessions=5
launchgap='/opt/launchgap/bin/launchgap'
output='/shared/launchgap'
history='/shared/launchgap/nights.db'
time_limit='01:00:00'
run_options=('--profile' 'nightly' '--runs' '1')
sbatch_options=()
