# The scripts of every map. Script 1 runs for the player, the last for an enemy, the others are called from Python
# with `puke NUMBER ...`.

# The player goes $stride units per tic in one of four directions, at once; if blocked, along one axis only.
# Then enemies learn how much their bullets hurt in the next tic: $closeness by their distance; 0 leaves it to them.
script 1 enter 0
:tic
    push 0  special1 19                                     # no thrust: nothing slides
    push -1  push 1  player_input  store 0
    push 0  actor_angle  store 1
    push 0  store 2  push 0  store 3
    load 0  push 8192  and  ifnot @not_forward
    load 1  cosine  push $stride  multiply  store 2
    load 1  sine  push $stride  multiply  store 3
    goto @move
:not_forward
    load 0  push 4096  and  ifnot @not_backward
    load 1  cosine  push -$stride  multiply  store 2
    load 1  sine  push -$stride  multiply  store 3
    goto @move
:not_backward
    load 0  push 1024  and  ifnot @not_right
    load 1  sine  push $stride  multiply  store 2
    load 1  cosine  push -$stride  multiply  store 3
    goto @move
:not_right
    load 0  push 2048  and  ifnot @turn
    load 1  sine  push -$stride  multiply  store 2
    load 1  cosine  push $stride  multiply  store 3
    goto @move
:turn                                                       # by 45 degrees: the engine's own turning is lost in one tic
    load 0  push 64  and  ifnot @not_left
    push 0  load 1  push 8192  add  set_angle
    goto @rest
:not_left
    load 0  push 128  and  ifnot @rest
    push 0  load 1  push -8192  add  set_angle
    goto @rest
:move                                                       # all the way, else along y, else along x
    load 2  store 8  load 3  store 9  push 0  store 7
:try
    push 0  actor_x  load 8  add  store 10
    push 0  actor_y  load 9  add  store 11
    push 20  store 12  push $enemy_reach  push 16  shift_left  store 15
:body                                                       # for the engine, a player who is put somewhere fits there
    load 12  push 0  property  push 0  greater  ifnot @no_body
    load 12  actor_x  store 13  load 12  actor_y  store 14
    load 10  load 13  subtract  load 15  less  ifnot @next_body
    load 13  load 10  subtract  load 15  less  ifnot @next_body
    load 11  load 14  subtract  load 15  less  ifnot @next_body
    load 14  load 11  subtract  load 15  less  ifnot @next_body
    push 0  actor_x  load 13  subtract  load 15  less  ifnot @blocked
    load 13  push 0  actor_x  subtract  load 15  less  ifnot @blocked
    push 0  actor_y  load 14  subtract  load 15  less  ifnot @blocked
    load 14  push 0  actor_y  subtract  load 15  less  ifnot @blocked
    goto @next_body                                         # who is inside already may leave
:no_body
    load 12  push 23  greater  ifgoto @free                 # no further pillar; a dead enemy may be followed by others
:next_body
    increment 12
    load 12  push 24  equal  ifnot @body
    push 1000  store 12  push 32  push 16  shift_left  store 15
    goto @body
:free
    push 0  load 10  load 11  push 0  actor_z  push 0  set_position  ifgoto @touch
:blocked
    increment 7
    push 0  store 8  load 3  store 9
    load 7  push 2  less  ifgoto @try
    load 2  store 8  push 0  store 9
    load 7  push 3  less  ifgoto @try
:touch                                                      # the least speed there is: only what moves takes up items
    push 0  push 1  push 0  push 0  push 0  push 0  call 6 23  drop
:rest
    load_map 0  load_map 1  or  ifnot @calm                 # the wind takes the player along
    load_map 0  store 2  load_map 1  store 3
    push 0  store_map 0  push 0  store_map 1
    load 2  store 8  load 3  store 9  push 3  store 7       # if blocked, it stays: there is no further try
    goto @try
:calm
    push $closeness  ifnot @wait
    push 20  store 4
:each
    load 4  actor_x  push 0  actor_x  subtract  load 4  actor_y  push 0  actor_y  subtract  call 2 50  store 5
    load 5  ifnot @next_enemy                               # there is none, or nothing to divide by
    push $closeness  push 16  shift_left  load 5  divide  store 6
    load 6  ifgoto @harm
    push 1  store 6
:harm
    load 4  push 'user_harm'  load 6  call 3 24  drop
:next_enemy
    increment 4
    load 4  push 24  less  ifgoto @each
:wait
    delay 1
    goto @tic

# hurt AMOUNT: the player loses health.
script 10 closed 1
    load 0  push 0  special2 73
    terminate

# order FIRST SECOND THIRD FOURTH: what the enemies do in their next tic.
script 11 closed 4
    push 20  push 'user_order'  load 0  call 3 24  drop
    push 21  push 'user_order'  load 1  call 3 24  drop
    push 22  push 'user_order'  load 2  call 3 24  drop
    push 23  push 'user_order'  load 3  call 3 24  drop
    terminate

# dodge TAG X Y HEALTH: an enemy that has less health by now, but some, goes somewhere, if it fits there.
script 12 closed 4
    load 0  push 0  property  load 3  less  ifnot @unhurt
    load 0  push 0  property  push 0  greater  ifnot @unhurt
    load 0
    load 1  push 16  shift_left  load 2  push 16  shift_left  load 0  actor_z  push 0  set_position  drop
:unhurt
    terminate

# spawn TAG X Y: an enemy appears, if it fits there.
script 13 closed 3
    push '$enemy'
    load 1  push 16  shift_left  load 2  push 16  shift_left  push 0  load 0  push 0  spawn  drop
    terminate

# drain AMOUNT: the player loses bullets.
script 14 closed 1
    push 'Clip'  load 0  take_inventory
    terminate

# blow X Y: the enemies and the player are moved, in hundredths of a unit; an enemy that is blocked goes along y,
# else along x, the player does not.
script 15 closed 2
    load 0  push 65536  multiply  push 100  divide  store 0
    load 1  push 65536  multiply  push 100  divide  store 1
    load 0  store_map 0  load 1  store_map 1
    push 20  store 2
:next
    load 2  push 23  greater  ifgoto @done
    load 2
    load 2  actor_x  load 0  add  load 2  actor_y  load 1  add  load 2  actor_z  push 0  set_position  ifgoto @blown
    load 2
    load 2  actor_x  load 2  actor_y  load 1  add  load 2  actor_z  push 0  set_position  ifgoto @blown
    load 2
    load 2  actor_x  load 0  add  load 2  actor_y  load 2  actor_z  push 0  set_position  drop
:blown
    increment 2
    goto @next
:done
    terminate

# For an enemy about to fire: whether another one is ahead and nearer to the line than 30 units and a 20th of how far.
script 16 closed 0
    push 0  set_result                                      # else the engine has it that it is so
    push 0  actor_angle  cosine  store 0
    push 0  actor_angle  sine  store 1
    push 20  store 2
:comrade
    load 2  push 0  property  push 0  greater  ifnot @clear
    load 2  actor_x  push 0  actor_x  subtract  store 3
    load 2  actor_y  push 0  actor_y  subtract  store 4
    load 3  load 0  fixed_multiply  load 4  load 1  fixed_multiply  add  store 5
    load 5  push 0  greater  ifnot @clear                   # behind, or who fires
    load 3  load 1  fixed_multiply  load 4  load 0  fixed_multiply  subtract  store 6
    load 5  push 20  divide  push 30  push 16  shift_left  add  store 7
    load 6  load 7  less  ifnot @clear
    push 0  load 6  subtract  load 7  less  ifnot @clear
    push 1  set_result
    terminate
:clear
    increment 2
    load 2  push 24  less  ifgoto @comrade
    terminate
